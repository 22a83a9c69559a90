// RUN: dlcb-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: symbol 'n' is defined twice
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %d = dlcb.shape.define "n" = %n
}

// -----

// CHECK: a traced value for 'm', which is no symbol of the system
dlcb.shape.system @main traced {m = 3} {
}

// -----

// CHECK: the traced value of 'n' is "3", expected an integer
"dlcb.shape.system"() <{function_name = "main", traced = {n = "3"}}> ({
  %n = dlcb.shape.symbol "n" size "x" 0
}) : () -> ()

// -----

// CHECK: test.op can not stand in a dlcb.shape.system
dlcb.shape.system @main {
  "test.op"() : () -> ()
}

// -----

// CHECK: 'dlcb.shape.constant' expects parent op 'dlcb.shape.system'
%c = dlcb.shape.constant 3

// -----

// CHECK: symbol 'n' comes from a 'rank', expected size, stride, int
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" rank "x" 0
}

// -----

// CHECK: symbol 'n': size with no dim
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x"
}

// -----

// CHECK: symbol 'n': int with dim 0
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" int "x" 0
}

// -----

// CHECK: symbol 'n': dim -1 is negative
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" -1
}

// -----

// CHECK: a requirement 'ge', expected one of eq, ne, lt, le, divides, broadcastable, expandable, any_of
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  dlcb.shape.require ge %n, %n
}

// -----

// CHECK: eq has 1 operands, expected 2
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  dlcb.shape.require eq %n
}

// -----

// CHECK: any_of has no operands, expected at least 1
dlcb.shape.system @main {
  "dlcb.shape.require"() <{kind_name = "any_of", message = ""}> : () -> ()
}

// -----

// CHECK: floordiv has 3 operands, expected 2
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %q = dlcb.shape.floordiv %n, %n, %n
}

// -----

// CHECK: add has 1 operands, expected two or more
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %q = dlcb.shape.add %n
}

// -----

// CHECK: the numerator of scaled is not a constant
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %two = dlcb.shape.constant 2
  %q = dlcb.shape.scaled %n, %n, %two
}

// -----

// CHECK: the denominator of scaled is 0, expected a positive one
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %zero = dlcb.shape.constant 0
  %two = dlcb.shape.constant 2
  %q = dlcb.shape.scaled %n, %two, %zero
}

// -----

// CHECK: le of a list; two lists can be eq, and nothing else
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %l = dlcb.shape.list [%n]
  dlcb.shape.require le %l, %l
}

// -----

// CHECK: eq of a list; two lists can be eq, and nothing else
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %l = dlcb.shape.list [%n]
  dlcb.shape.require eq %l, %n
}

// -----

// CHECK: [0, 0] is no order of a list of 2
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %l = dlcb.shape.list [%n, %n]
  %p = dlcb.shape.permute %l [0, 0]
}

// -----

// CHECK: the result is a list of 3, expected 1
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %l = "dlcb.shape.list"(%n) : (index) -> !dlcb.shape.list<3>
}

// -----

// CHECK: concat has no operands, expected at least 1
dlcb.shape.system @main {
  %l = "dlcb.shape.concat"() : () -> !dlcb.shape.list<0>
}

// -----

// CHECK: Expected attribute index but got !dlcb.shape.list<2>
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %l = dlcb.shape.list [%n, %n]
  %s = dlcb.shape.add %l, %n
}

// -----

// CHECK: a list of -1 sizes
dlcb.shape.system @main {
  %l = "dlcb.shape.list"() : () -> !dlcb.shape.list<-1>
}

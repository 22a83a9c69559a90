// RUN: dlcb-opt %s -p dlcb-shape-solve | filecheck %s

// CHECK-LABEL: dlcb.shape.system @a_literal_is_put_in_and_stays_a_check traced {h = 11} {
// CHECK-NEXT:    %h = dlcb.shape.symbol "h" size "x" 0
// CHECK-NEXT:    [[four:%.*]] = dlcb.shape.constant 4
// CHECK-NEXT:    dlcb.shape.require eq %h, [[four]] "linear: model.py:12"
// CHECK-NEXT:  }
dlcb.shape.system @a_literal_is_put_in_and_stays_a_check traced {h = 11} {
  %h = dlcb.shape.symbol "h" size "x" 0
  %two = dlcb.shape.constant 2
  %ten = dlcb.shape.constant 10
  %double = dlcb.shape.mul %two, %h
  %more = dlcb.shape.add %double, %two
  %d0 = dlcb.shape.define "d0" = %more
  dlcb.shape.require eq %d0, %ten "linear: model.py:12"
}

// CHECK-LABEL: dlcb.shape.system @equal_symbols_become_the_earlier_one {
// CHECK-NEXT:    %x0 = dlcb.shape.symbol "x_0" size "x" 0
// CHECK-NEXT:    %y0 = dlcb.shape.symbol "y_0" size "y" 0
// CHECK-NEXT:    [[one:%.*]] = dlcb.shape.constant 1
// CHECK-NEXT:    [[sum:%.*]] = dlcb.shape.add %x0, [[one]]
// CHECK-NEXT:    %d1 = dlcb.shape.define "d1" = [[sum]]
// CHECK-NEXT:    dlcb.shape.require eq %y0, %x0 "add: model.py:3"
// CHECK-NEXT:  }
dlcb.shape.system @equal_symbols_become_the_earlier_one {
  %x_0 = dlcb.shape.symbol "x_0" size "x" 0
  %y_0 = dlcb.shape.symbol "y_0" size "y" 0
  %one = dlcb.shape.constant 1
  %d0 = dlcb.shape.define "d0" = %y_0
  %sum = dlcb.shape.add %d0, %one
  %d1 = dlcb.shape.define "d1" = %sum
  %other = dlcb.shape.add %x_0, %one
  %d2 = dlcb.shape.define "d2" = %other
  dlcb.shape.require eq %y_0, %x_0 "add: model.py:3"
  dlcb.shape.require eq %d1, %d2 "add: model.py:4"
}

// CHECK-LABEL: dlcb.shape.system @what_is_not_proved_stays {
// CHECK-NEXT:    %b = dlcb.shape.symbol "b" size "x" 0
// CHECK-NEXT:    %n = dlcb.shape.symbol "n" size "x" 1
// CHECK-NEXT:    %m = dlcb.shape.symbol "m" size "y" 0
// CHECK-NEXT:    [[left:%.*]] = dlcb.shape.mul %b, %n
// CHECK-NEXT:    [[right:%.*]] = dlcb.shape.mul %b, %m
// CHECK-NEXT:    dlcb.shape.require eq [[left]], [[right]] "view: model.py:7"
// CHECK-NEXT:    dlcb.shape.require broadcastable %n, %m "mul: model.py:8"
// CHECK-NEXT:  }
dlcb.shape.system @what_is_not_proved_stays {
  %b = dlcb.shape.symbol "b" size "x" 0
  %n = dlcb.shape.symbol "n" size "x" 1
  %m = dlcb.shape.symbol "m" size "y" 0
  %left = dlcb.shape.mul %b, %n
  %right = dlcb.shape.mul %b, %m
  dlcb.shape.require eq %left, %right "view: model.py:7"
  dlcb.shape.require broadcastable %n, %m "mul: model.py:8"
}

// CHECK-LABEL: dlcb.shape.system @windows_in_a_row_are_one_division {
// CHECK-NEXT:    %h = dlcb.shape.symbol "h" size "x" 2
// CHECK-NEXT:    [[three:%.*]] = dlcb.shape.constant 3
// CHECK-NEXT:    [[sum:%.*]] = dlcb.shape.add %h, [[three]]
// CHECK-NEXT:    [[four:%.*]] = dlcb.shape.constant 4
// CHECK-NEXT:    [[q:%.*]] = dlcb.shape.floordiv [[sum]], [[four]]
// CHECK-NEXT:    %d0 = dlcb.shape.define "d0" = [[q]]
// CHECK-NEXT:    [[one:%.*]] = dlcb.shape.constant 1
// CHECK-NEXT:    dlcb.shape.require le [[one]], %h "conv2d: model.py:5"
// CHECK-NEXT:  }
dlcb.shape.system @windows_in_a_row_are_one_division {
  %h = dlcb.shape.symbol "h" size "x" 2
  %one = dlcb.shape.constant 1
  %two = dlcb.shape.constant 2
  %minus = dlcb.shape.constant -1
  %a = dlcb.shape.add %h, %minus
  %b = dlcb.shape.floordiv %a, %two
  %first = dlcb.shape.add %b, %one
  %c = dlcb.shape.add %first, %minus
  %d = dlcb.shape.floordiv %c, %two
  %second = dlcb.shape.add %d, %one
  %d0 = dlcb.shape.define "d0" = %second
  dlcb.shape.require le %one, %first "conv2d: model.py:5"
  dlcb.shape.require le %one, %second "conv2d: model.py:6"
}

// CHECK-LABEL: dlcb.shape.system @lists_are_equal_element_by_element {
// CHECK-NEXT:    %n = dlcb.shape.symbol "n" size "x" 0
// CHECK-NEXT:    %m = dlcb.shape.symbol "m" size "y" 0
// CHECK-NEXT:    %k = dlcb.shape.symbol "k" size "y" 1
// CHECK-NEXT:    [[four:%.*]] = dlcb.shape.constant 4
// CHECK-NEXT:    dlcb.shape.require eq %k, [[four]] "where: model.py:9"
// CHECK-NEXT:    dlcb.shape.require eq %m, %n "where: model.py:9"
// CHECK-NEXT:  }
dlcb.shape.system @lists_are_equal_element_by_element {
  %n = dlcb.shape.symbol "n" size "x" 0
  %m = dlcb.shape.symbol "m" size "y" 0
  %k = dlcb.shape.symbol "k" size "y" 1
  %four = dlcb.shape.constant 4
  %left = dlcb.shape.list [%four]
  %right = dlcb.shape.list [%n]
  %whole = dlcb.shape.concat %left, %right
  %sizes = dlcb.shape.list [%m, %k]
  %turned = dlcb.shape.permute %sizes [1, 0]
  dlcb.shape.require eq %whole, %turned "where: model.py:9"
}

// CHECK-LABEL: dlcb.shape.system @a_known_multiple_leaves_a_division {
// CHECK-NOT:     dlcb.shape.mod
// CHECK:         [[q:%.*]] = dlcb.shape.floordiv %n,
// CHECK-NEXT:    %d1 = dlcb.shape.define "d1" = [[q]]
// CHECK-NEXT:    dlcb.shape.require divides %{{.*}}, %n "view: model.py:3"
// CHECK-NEXT:  }
dlcb.shape.system @a_known_multiple_leaves_a_division {
  %n = dlcb.shape.symbol "n" size "x" 0
  %four = dlcb.shape.constant 4
  %zero = dlcb.shape.constant 0
  %q = dlcb.shape.floordiv %n, %four
  %rest = dlcb.shape.mod %n, %four
  %whole = dlcb.shape.mul %q, %four
  %d1 = dlcb.shape.define "d1" = %q
  dlcb.shape.require divides %four, %n "view: model.py:3"
  dlcb.shape.require eq %rest, %zero "view: model.py:4"
  dlcb.shape.require eq %whole, %n "view: model.py:5"
}

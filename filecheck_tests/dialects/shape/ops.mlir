// RUN: dlcb-opt %s | dlcb-opt | filecheck %s
// RUN: dlcb-opt --print-op-generic %s | dlcb-opt | filecheck %s

// CHECK-LABEL: dlcb.shape.system @empty {
dlcb.shape.system @empty {
}

// CHECK-LABEL: dlcb.shape.system @sources traced {n = 11, s = 1} {
dlcb.shape.system @sources traced {n = 11, s = 1} {
  // CHECK-NEXT: %n = dlcb.shape.symbol "n" size "x" 0
  %n = dlcb.shape.symbol "n" size "x" 0
  // CHECK-NEXT: %s = dlcb.shape.symbol "s" stride "x" 1
  %s = dlcb.shape.symbol "s" stride "x" 1
  // CHECK-NEXT: %k = dlcb.shape.symbol "k" int "k"
  %k = dlcb.shape.symbol "k" int "k"
  // CHECK-NEXT: %minus = dlcb.shape.constant -4
  %minus = dlcb.shape.constant -4
}

// CHECK-LABEL: dlcb.shape.system @functions {
dlcb.shape.system @functions {
  %n = dlcb.shape.symbol "n" size "x" 0
  %m = dlcb.shape.symbol "m" size "x" 1
  %two = dlcb.shape.constant 2
  %three = dlcb.shape.constant 3
  // CHECK: %add = dlcb.shape.add %n, %m, %two
  %add = dlcb.shape.add %n, %m, %two
  // CHECK-NEXT: %mul = dlcb.shape.mul %n, %m
  %mul = dlcb.shape.mul %n, %m
  // CHECK-NEXT: %floor = dlcb.shape.floordiv %n, %two
  %floor = dlcb.shape.floordiv %n, %two
  // CHECK-NEXT: %ceil = dlcb.shape.ceildiv %n, %m
  %ceil = dlcb.shape.ceildiv %n, %m
  // CHECK-NEXT: %mod = dlcb.shape.mod %n, %two
  %mod = dlcb.shape.mod %n, %two
  // CHECK-NEXT: %scaled = dlcb.shape.scaled %n, %three, %two
  %scaled = dlcb.shape.scaled %n, %three, %two
  // CHECK-NEXT: %min = dlcb.shape.minimum %n, %m, %two
  %min = dlcb.shape.minimum %n, %m, %two
  // CHECK-NEXT: %max = dlcb.shape.maximum %n, %m
  %max = dlcb.shape.maximum %n, %m
  // CHECK-NEXT: %both = dlcb.shape.broadcast %n, %m
  %both = dlcb.shape.broadcast %n, %m
  // CHECK-NEXT: %eq = dlcb.shape.eq %n, %m
  %eq = dlcb.shape.eq %n, %m
  // CHECK-NEXT: %ne = dlcb.shape.ne %n, %m
  %ne = dlcb.shape.ne %n, %m
  // CHECK-NEXT: %lt = dlcb.shape.lt %n, %m
  %lt = dlcb.shape.lt %n, %m
  // CHECK-NEXT: %le = dlcb.shape.le %n, %m
  %le = dlcb.shape.le %n, %m
  // CHECK-NEXT: %and = dlcb.shape.logical_and %eq, %lt
  %and = dlcb.shape.logical_and %eq, %lt
  // CHECK-NEXT: %or = dlcb.shape.logical_or %eq, %lt
  %or = dlcb.shape.logical_or %eq, %lt
  // CHECK-NEXT: %not = dlcb.shape.logical_not %eq
  %not = dlcb.shape.logical_not %eq
  // CHECK-NEXT: %select = dlcb.shape.select %eq, %n, %m
  %select = dlcb.shape.select %eq, %n, %m
}

// CHECK-LABEL: dlcb.shape.system @requirements {
dlcb.shape.system @requirements {
  %n = dlcb.shape.symbol "n" size "x" 0
  %m = dlcb.shape.symbol "m" size "x" 1
  %sum = dlcb.shape.add %n, %m
  // CHECK: %d0 = dlcb.shape.define "d0" = %sum
  %d0 = dlcb.shape.define "d0" = %sum
  %eq = dlcb.shape.eq %n, %d0
  %lt = dlcb.shape.lt %n, %m
  // CHECK: dlcb.shape.require eq %n, %d0 "linear: model.py:12"
  dlcb.shape.require eq %n, %d0 "linear: model.py:12"
  // CHECK-NEXT: dlcb.shape.require ne %n, %m
  dlcb.shape.require ne %n, %m
  // CHECK-NEXT: dlcb.shape.require lt %n, %m
  dlcb.shape.require lt %n, %m
  // CHECK-NEXT: dlcb.shape.require le %n, %m
  dlcb.shape.require le %n, %m
  // CHECK-NEXT: dlcb.shape.require divides %n, %m
  dlcb.shape.require divides %n, %m
  // CHECK-NEXT: dlcb.shape.require broadcastable %n, %m
  dlcb.shape.require broadcastable %n, %m
  // CHECK-NEXT: dlcb.shape.require expandable %n, %m
  dlcb.shape.require expandable %n, %m
  // CHECK-NEXT: dlcb.shape.require any_of %eq, %lt, %n "pad: model.py:3"
  dlcb.shape.require any_of %eq, %lt, %n "pad: model.py:3"
}

// CHECK-LABEL: dlcb.shape.system @lists {
dlcb.shape.system @lists {
  %n = dlcb.shape.symbol "n" size "x" 0
  %m = dlcb.shape.symbol "m" size "x" 1
  // CHECK: %list = dlcb.shape.list [%n, %m]
  %list = dlcb.shape.list [%n, %m]
  // CHECK-NEXT: %empty = dlcb.shape.list []
  %empty = dlcb.shape.list []
  // CHECK-NEXT: %both = dlcb.shape.concat %list, %empty, %list
  %both = dlcb.shape.concat %list, %empty, %list
  // CHECK-NEXT: %turned = dlcb.shape.permute %both [3, 0, 1, 2]
  %turned = dlcb.shape.permute %both [3, 0, 1, 2]
  // CHECK-NEXT: dlcb.shape.require eq %turned, %both "add: model.py:3"
  dlcb.shape.require eq %turned, %both "add: model.py:3"
}

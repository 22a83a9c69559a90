// RUN: not dlcb-opt %s -p dlcb-shape-solve 2>&1 | filecheck %s

// Reported at the op that came last, with what it breaks.
// CHECK: linear: model.py:12: d0 == 7 can not hold: conv2d: model.py:3: 5 <= x_0 is then 5 <= 3 (x_0 is x.shape[0])
dlcb.shape.system @main {
  %x_0 = dlcb.shape.symbol "x_0" size "x" 0
  %five = dlcb.shape.constant 5
  %two = dlcb.shape.constant 2
  %one = dlcb.shape.constant 1
  %double = dlcb.shape.mul %two, %x_0
  %more = dlcb.shape.add %double, %one
  %d0 = dlcb.shape.define "d0" = %more
  %seven = dlcb.shape.constant 7
  dlcb.shape.require le %five, %x_0 "conv2d: model.py:3"
  dlcb.shape.require eq %d0, %seven "linear: model.py:12"
}

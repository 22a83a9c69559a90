// RUN: not dlcb-opt %s -p dlcb-shape-solve 2>&1 | filecheck %s

// CHECK: matmul: model.py:14: x_0 == 5 can not hold: it says 4 == 5, because of linear: model.py:12 (x_0 is x.shape[0])
dlcb.shape.system @main {
  %x_0 = dlcb.shape.symbol "x_0" size "x" 0
  %four = dlcb.shape.constant 4
  %five = dlcb.shape.constant 5
  dlcb.shape.require eq %x_0, %four "linear: model.py:12"
  dlcb.shape.require eq %x_0, %five "matmul: model.py:14"
}

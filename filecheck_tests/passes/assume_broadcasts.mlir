// RUN: dlcb-opt %s -p dlcb-collect,dlcb-solve,dlcb-assume-broadcasts | filecheck %s

// x and y had the same first size in the trace, and c one column: these are one size, and 1.
// CHECK-NOT: broadcastable
// CHECK-DAG: dlcb.shape.require eq %{{.*}} "sizes broadcast otherwise than in the example: add: model.py:7: sizes that do not broadcast"
// CHECK: dlcb.graph.func @main(%x: tensor<[x_0, x_1], f32> input "x",
// CHECK-NEXT: %c: tensor<[x_0, 1], f32> input "c")
// CHECK: dlcb.graph.add %x, %c {{.*}} -> tensor<[x_0, x_1], f32>
dlcb.shape.system @main traced {x_0 = 11, x_1 = 13, c_0 = 11, c_1 = 1} {
  %x0 = dlcb.shape.symbol "x_0" size "x" 0
  %x1 = dlcb.shape.symbol "x_1" size "x" 1
  %c0 = dlcb.shape.symbol "c_0" size "c" 0
  %c1 = dlcb.shape.symbol "c_1" size "c" 1
  %b0 = dlcb.shape.broadcast %c0, %x0
  %b1 = dlcb.shape.broadcast %c1, %x1
  %d0 = dlcb.shape.define "d0" = %b0
  %d1 = dlcb.shape.define "d1" = %b1
}
dlcb.graph.func @main(%x: tensor<[x_0, x_1], f32> input "x", %c: tensor<[c_0, c_1], f32> input "c") {
  %r = dlcb.graph.add %x, %c : (tensor<[x_0, x_1], f32>, tensor<[c_0, c_1], f32>) -> tensor<[d0, d1], f32> loc("model.py":7:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[d0, d1], f32>
}

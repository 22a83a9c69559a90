// RUN: dlcb-opt %s --report dimensions -o /dev/null 2>&1 | filecheck %s
// RUN: dlcb-opt %s --stop-after fuse --report dimensions -o /dev/null 2>&1 | filecheck %s
// RUN: not dlcb-opt %s --report sizes 2>&1 | filecheck %s --check-prefix=UNKNOWN

// What became of each size of each input: free, checked at launch, equal to another, fixed by an op.
// CHECK: @main
// CHECK-NEXT:   x.shape[0]  free as x_0; checked at launch: divides(4, x_0*x_1) (reshape: model.py:6:
// CHECK-NEXT:   x.shape[1]  free as x_1; checked at launch:
// CHECK-NEXT:   y.shape[0]  equal to x_0 by matmul: model.py:7: inner sizes differ
// CHECK-NEXT:   y.shape[1]  pinned to 8 by matmul: model.py:8: inner sizes differ; weight 'w'
// CHECK-NEXT:   z.shape[0]  given as 5
// CHECK-NOT: shape
// UNKNOWN: --report: invalid choice: 'sizes'
dlcb.shape.system @main {
  %x0 = dlcb.shape.symbol "x_0" size "x" 0
  %x1 = dlcb.shape.symbol "x_1" size "x" 1
  %four = dlcb.shape.constant 4
  %n = dlcb.shape.mul %x0, %x1
  %d = dlcb.shape.floordiv %n, %four
  %d0 = dlcb.shape.define "d0" = %d
}
dlcb.graph.func @main(%x: tensor<[x_0, x_1], f32> input "x", %y: tensor<[y_0, y_1], f32> input "y", %z: tensor<[5], f32> input "z", %w: tensor<[8, 3], f32> weight "w") {
  %r = dlcb.graph.reshape %x {shape = [d0, 4]} : (tensor<[x_0, x_1], f32>) -> tensor<[d0, 4], f32> loc("model.py":6:0)
  %t = dlcb.graph.permute %x {order = [1, 0]} : (tensor<[x_0, x_1], f32>) -> tensor<[x_1, x_0], f32> loc("model.py":7:0)
  %a = dlcb.graph.matmul %t, %y : (tensor<[x_1, x_0], f32>, tensor<[y_0, y_1], f32>) -> tensor<[x_1, y_1], f32> loc("model.py":7:0)
  %b = dlcb.graph.matmul %a, %w : (tensor<[x_1, y_1], f32>, tensor<[8, 3], f32>) -> tensor<[x_1, 3], f32> loc("model.py":8:0)
  dlcb.graph.return %r, %b, %z : !dlcb.graph.tensor<[d0, 4], f32>, !dlcb.graph.tensor<[x_1, 3], f32>, !dlcb.graph.tensor<[5], f32>
}

// RUN: not dlcb-opt %s -p dlcb-collect,dlcb-solve 2>&1 | filecheck %s

// CHECK: matmul: model.py:9: inner sizes differ
// CHECK-SAME: because of matmul: model.py:7: inner sizes differ; weight 'w' (x_1 is x.shape[1])
dlcb.graph.func @contradiction(%x: tensor<[x_0, x_1], f32> input "x", %w: tensor<[8, 4], f32> weight "w", %v: tensor<[6, 4], f32> weight "v") {
  %r = dlcb.graph.matmul %x, %w : (tensor<[x_0, x_1], f32>, tensor<[8, 4], f32>) -> tensor<[x_0, 4], f32> loc("model.py":7:0)
  %s = dlcb.graph.matmul %x, %v : (tensor<[x_0, x_1], f32>, tensor<[6, 4], f32>) -> tensor<[x_0, 4], f32> loc("model.py":9:0)
  dlcb.graph.return %r, %s : !dlcb.graph.tensor<[x_0, 4], f32>, !dlcb.graph.tensor<[x_0, 4], f32>
}

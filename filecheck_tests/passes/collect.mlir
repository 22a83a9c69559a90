// RUN: dlcb-opt %s -p dlcb-collect --split-input-file | filecheck %s

// CHECK: dlcb.shape.system @same_sizes {
// CHECK-NEXT: %{{.*}} = dlcb.shape.symbol "x_0" size "x" 0
// CHECK-NEXT: }
dlcb.graph.func @same_sizes(%x: tensor<[x_0, 8], f32> input "x") {
  %r = dlcb.graph.exp %x : (tensor<[x_0, 8], f32>) -> tensor<[x_0, 8], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0, 8], f32>
}

// -----

// CHECK: dlcb.shape.system @inner_sizes {
// CHECK: %[[X1:.*]] = dlcb.shape.symbol "x_1" size "x" 1
// CHECK: dlcb.shape.require eq %[[X1]], %{{.*}} "matmul: model.py:7: inner sizes differ; weight 'w'"
dlcb.graph.func @inner_sizes(%x: tensor<[x_0, x_1], f32> input "x", %w: tensor<[8, 4], f32> weight "w") {
  %r = dlcb.graph.matmul %x, %w : (tensor<[x_0, x_1], f32>, tensor<[8, 4], f32>) -> tensor<[x_0, 4], f32> loc("model.py":7:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0, 4], f32>
}

// -----

// CHECK: dlcb.shape.system @new_size {
// CHECK: dlcb.shape.define "d0"
// CHECK-NOT: require eq
dlcb.graph.func @new_size(%x: tensor<[x_0], f32> input "x", %y: tensor<[y_0], f32> input "y") {
  %r = dlcb.graph.concat %x, %y {axis = #builtin.int<0>} : (tensor<[x_0], f32>, tensor<[y_0], f32>) -> tensor<[d0], f32>
  %s = dlcb.graph.exp %r : (tensor<[d0], f32>) -> tensor<[d0], f32>
  dlcb.graph.return %s : !dlcb.graph.tensor<[d0], f32>
}

// -----

// CHECK: dlcb.shape.system @broadcast {
// CHECK: dlcb.shape.require broadcastable %{{.*}}, %{{.*}} "add: ?: sizes that do not broadcast"
// CHECK-NEXT: dlcb.shape.broadcast
// CHECK-NEXT: dlcb.shape.require eq
dlcb.graph.func @broadcast(%x: tensor<[x_0], f32> input "x", %y: tensor<[y_0], f32> input "y") {
  %r = dlcb.graph.add %x, %y : (tensor<[x_0], f32>, tensor<[y_0], f32>) -> tensor<[x_0], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0], f32>
}

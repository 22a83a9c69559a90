// RUN: dlcb-opt %s -p dlcb-generalize,dlcb-collect,dlcb-solve --split-input-file | filecheck %s

// CHECK: dlcb.shape.system @linear traced {x_0 = 5, x_1 = 8}
// CHECK: dlcb.graph.func @linear(%x: tensor<[x_0, 8], f32> input "x"
// CHECK: "x.shape[1]" = "pinned to 8 by matmul: model.py:7: inner sizes differ; weight 'w'"
// CHECK: -> tensor<[x_0, 4], f32>
dlcb.graph.func @linear(%x: tensor<[5, 8], f32> input "x", %w: tensor<[8, 4], f32> weight "w") {
  %r = dlcb.graph.matmul %x, %w : (tensor<[5, 8], f32>, tensor<[8, 4], f32>) -> tensor<[5, 4], f32> loc("model.py":7:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[5, 4], f32>
}

// -----

// CHECK: dlcb.graph.func @heads(%x: tensor<[x_0, x_1, 12], f32> input "x"
// CHECK: dlcb.derivations = ["reshape: ?: 3 is x_0: the dim stays", "reshape: ?: 5 is x_1: the dim stays"
// CHECK: shape = [x_0, x_1, 2, 6]
// CHECK: shape = [d{{[0-9]+}}, 12]
// CHECK: shape = [x_0, x_1, 12]
dlcb.graph.func @heads(%x: tensor<[3, 5, 12], f32> input "x") attributes {dlcb.static = ["x.shape[2]"]} {
  %y = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[3, 5, 2, 6]>} : (tensor<[3, 5, 12], f32>) -> tensor<[3, 5, 2, 6], f32>
  %z = dlcb.graph.reshape %y {shape = #dlcb.graph.dims<[15, 12]>} : (tensor<[3, 5, 2, 6], f32>) -> tensor<[15, 12], f32>
  %r = dlcb.graph.reshape %z {shape = #dlcb.graph.dims<[3, 5, 12]>} : (tensor<[15, 12], f32>) -> tensor<[3, 5, 12], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[3, 5, 12], f32>
}

// -----

// CHECK: dlcb.graph.func @views(%x: tensor<[x_0, x_1], f32> input "x"
// CHECK: starts = [0, 1], shape = [x_0, 4]
// CHECK: shape = [2, x_0, 4]
dlcb.graph.func @views(%x: tensor<[3, 7], f32> input "x") {
  %y = dlcb.graph.slice %x {starts = #dlcb.graph.dims<[0, 1]>, shape = #dlcb.graph.dims<[3, 4]>, steps = #dlcb.graph.dims<[1, 1]>} : (tensor<[3, 7], f32>) -> tensor<[3, 4], f32>
  %r = dlcb.graph.expand %y {shape = #dlcb.graph.dims<[2, 3, 4]>} : (tensor<[3, 4], f32>) -> tensor<[2, 3, 4], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[2, 3, 4], f32>
}

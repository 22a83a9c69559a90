// RUN: dlcb-opt %s -p dlcb-simplify --split-input-file | filecheck %s

// CHECK: dlcb.shape.system @dead_ops
// CHECK-NOT: dlcb.graph.exp
// CHECK: dlcb.graph.return %x
dlcb.graph.func @dead_ops(%x: tensor<[n, 8], f32> input "x") {
  %a = dlcb.graph.exp %x : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  %b = dlcb.graph.log %a : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return %x : !dlcb.graph.tensor<[n, 8], f32>
}

// -----

// CHECK: @equal_ops
// CHECK: %[[A:.*]] = dlcb.graph.exp
// CHECK-NOT: dlcb.graph.exp
// CHECK: dlcb.graph.add %[[A]], %[[A]]
dlcb.graph.func @equal_ops(%x: tensor<[n, 8], f32> input "x") {
  %a = dlcb.graph.exp %x : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  %b = dlcb.graph.exp %x : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  %r = dlcb.graph.add %a, %b : (tensor<[n, 8], f32>, tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8], f32>
}

// -----

// CHECK: dlcb.graph.func @view_chain
// CHECK-NEXT: dlcb.graph.return %x
dlcb.graph.func @view_chain(%x: tensor<[n, 8], f32> input "x") {
  %a = dlcb.graph.permute %x {order = [#builtin.int<1>, #builtin.int<0>]} : (tensor<[n, 8], f32>) -> tensor<[8, n], f32>
  %b = dlcb.graph.permute %a {order = [#builtin.int<1>, #builtin.int<0>]} : (tensor<[8, n], f32>) -> tensor<[n, 8], f32>
  %c = dlcb.graph.reshape %b {shape = #dlcb.graph.dims<[n, 2, 4]>} : (tensor<[n, 8], f32>) -> tensor<[n, 2, 4], f32>
  %d = dlcb.graph.reshape %c {shape = #dlcb.graph.dims<[n, 8]>} : (tensor<[n, 2, 4], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return %d : !dlcb.graph.tensor<[n, 8], f32>
}

// -----

// CHECK: dlcb.shape.system @weights
// CHECK: dlcb.graph.func @weights(%{{.*}}: tensor<[8, 3, 1, 1], f32> weight "conv.weight"
// CHECK: dlcb.graph.func @main(%x: tensor<[n, 3, h, h], f32> input "x",
// CHECK-NEXT: weight "conv.weight|bn",
// CHECK-NEXT: weight "conv.bias|bn") attributes {dlcb.derived = {"conv.weight|bn" = 0 : i64, "conv.bias|bn" = 1 : i64}} {
// CHECK-NEXT: dlcb.graph.convolution
// CHECK-NEXT: dlcb.graph.relu
// CHECK-NEXT: dlcb.graph.return
dlcb.graph.func @main(%x: tensor<[n, 3, h, h], f32> input "x", %w: tensor<[8, 3, 1, 1], f32> weight "conv.weight", %b: tensor<[8], f32> weight "conv.bias",
    %m: tensor<[8], f32> weight "bn.running_mean", %v: tensor<[8], f32> weight "bn.running_var", %g: tensor<[8], f32> weight "bn.weight", %e: tensor<[8], f32> weight "bn.bias") {
  %c = dlcb.graph.convolution %x, %w, %b {dilation = [#builtin.int<1>, #builtin.int<1>], groups = #builtin.int<1>, padding = [#builtin.int<0>, #builtin.int<0>], stride = [#builtin.int<1>, #builtin.int<1>]} : (tensor<[n, 3, h, h], f32>, tensor<[8, 3, 1, 1], f32>, tensor<[8], f32>) -> tensor<[n, 8, h, h], f32>
  %d = dlcb.graph.batch_norm %c, %m, %v, %g, %e {eps = 1.0e-05 : f64} : (tensor<[n, 8, h, h], f32>, tensor<[8], f32>, tensor<[8], f32>, tensor<[8], f32>, tensor<[8], f32>) -> tensor<[n, 8, h, h], f32>
  %r = dlcb.graph.relu %d : (tensor<[n, 8, h, h], f32>) -> tensor<[n, 8, h, h], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8, h, h], f32>
}

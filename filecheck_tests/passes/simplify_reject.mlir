// RUN: dlcb-opt %s -p dlcb-simplify --split-input-file | filecheck %s

// CHECK: @different_properties
// CHECK: dlcb.graph.sum
// CHECK: dlcb.graph.sum
dlcb.graph.func @different_properties(%x: tensor<[8, 8], f32> input "x") {
  %a = dlcb.graph.sum %x {axes = [#builtin.int<0>]} : (tensor<[8, 8], f32>) -> tensor<[8], f32>
  %b = dlcb.graph.sum %x {axes = [#builtin.int<1>]} : (tensor<[8, 8], f32>) -> tensor<[8], f32>
  dlcb.graph.return %a, %b : !dlcb.graph.tensor<[8], f32>, !dlcb.graph.tensor<[8], f32>
}

// -----

// CHECK: @different_types
// CHECK: dlcb.graph.full
// CHECK: dlcb.graph.full
dlcb.graph.func @different_types() {
  %a = dlcb.graph.full {shape = #dlcb.graph.dims<[]>, value = 1 : i64} : () -> tensor<[], f32>
  %b = dlcb.graph.full {shape = #dlcb.graph.dims<[]>, value = 1 : i64} : () -> tensor<[], i64>
  dlcb.graph.return %a, %b : !dlcb.graph.tensor<[], f32>, !dlcb.graph.tensor<[], i64>
}

// -----

// Adding 0.0 turns -0.0 into 0.0.
// CHECK: @positive_zero
// CHECK: dlcb.graph.add
dlcb.graph.func @positive_zero(%x: tensor<[n], f32> input "x") {
  %z = dlcb.graph.full {shape = #dlcb.graph.dims<[]>, value = 0.0 : f64} : () -> tensor<[], f32>
  %r = dlcb.graph.add %x, %z : (tensor<[n], f32>, tensor<[], f32>) -> tensor<[n], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n], f32>
}

// -----

// The result of the convolution is also returned, so the batch norm stays apart and decomposes; its scale is derived.
// CHECK: @weights
// CHECK: dlcb.graph.rsqrt
// CHECK: @shared_convolution
// CHECK: dlcb.graph.convolution %x, %w {
// CHECK: dlcb.graph.sub
// CHECK: dlcb.graph.mul
dlcb.graph.func @shared_convolution(%x: tensor<[n, 3, 9], f16> input "x", %w: tensor<[8, 3, 1], f16> weight "conv.weight",
    %m: tensor<[8], f16> weight "bn.running_mean", %v: tensor<[8], f16> weight "bn.running_var") {
  %c = dlcb.graph.convolution %x, %w {dilation = [#builtin.int<1>], groups = #builtin.int<1>, padding = [#builtin.int<0>], stride = [#builtin.int<1>]} : (tensor<[n, 3, 9], f16>, tensor<[8, 3, 1], f16>) -> tensor<[n, 8, 9], f16>
  %r = dlcb.graph.batch_norm %c, %m, %v {eps = 1.0e-05 : f64} : (tensor<[n, 8, 9], f16>, tensor<[8], f16>, tensor<[8], f16>) -> tensor<[n, 8, 9], f16>
  dlcb.graph.return %r, %c : !dlcb.graph.tensor<[n, 8, 9], f16>, !dlcb.graph.tensor<[n, 8, 9], f16>
}

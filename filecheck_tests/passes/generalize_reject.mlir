// RUN: dlcb-opt %s -p dlcb-generalize,dlcb-collect,dlcb-solve --split-input-file | filecheck %s

// CHECK: dlcb.graph.func @tracked(%x: tensor<[5], f32> input "x") attributes {dlcb.symbolic, dlcb.dimensions = {"x.shape[0]" = "given as 5"}}
dlcb.graph.func @tracked(%x: tensor<[5], f32> input "x") attributes {dlcb.symbolic} {
  dlcb.graph.return %x : !dlcb.graph.tensor<[5], f32>
}

// -----

// CHECK: dlcb.graph.func @static(%x: tensor<[5], f32> input "x") attributes {dlcb.static, dlcb.dimensions = {"x.shape[0]" = "given as 5"}}
dlcb.graph.func @static(%x: tensor<[5], f32> input "x") attributes {dlcb.static} {
  dlcb.graph.return %x : !dlcb.graph.tensor<[5], f32>
}

// -----

// CHECK: dlcb.graph.func @listed(%x: tensor<[x_0, 5], f32> input "x"
// CHECK-SAME: "x.shape[0]" = "free as x_0", "x.shape[1]" = "stays 5: it is to be static"
dlcb.graph.func @listed(%x: tensor<[5, 5], f32> input "x") attributes {dlcb.static = ["x.shape[1]"]} {
  dlcb.graph.return %x : !dlcb.graph.tensor<[5, 5], f32>
}

// -----

// CHECK: dlcb.graph.func @one(%x: tensor<[1], f32> input "x"
// CHECK-SAME: "x.shape[0]" = "stays 1: a size of 1 in the trace can't be told from broadcasting"
dlcb.graph.func @one(%x: tensor<[1], f32> input "x") {
  dlcb.graph.return %x : !dlcb.graph.tensor<[1], f32>
}

// -----

// CHECK: dlcb.graph.func @coincidence(%x: tensor<[5], f32> input "x"
// CHECK-SAME: "x.shape[0]" = "pinned to 5 by full: model.py:3: the 5 in its shape may be this size"
dlcb.graph.func @coincidence(%x: tensor<[5], f32> input "x") {
  %z = dlcb.graph.full {shape = #dlcb.graph.dims<[5]>, value = 1.0 : f64} : () -> tensor<[5], f32> loc("model.py":3:0)
  %r = dlcb.graph.add %x, %z : (tensor<[5], f32>, tensor<[5], f32>) -> tensor<[5], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[5], f32>
}

// -----

// The 6 may be 2 * 3 or a number of the program: nothing says which part of the 12 it is.
// CHECK: dlcb.graph.func @ambiguous(%x: tensor<[12], f32> input "x"
// CHECK-SAME: "x.shape[0]" = "pinned to 12 by reshape: model.py:4: number of elements differs"
dlcb.graph.func @ambiguous(%x: tensor<[12], f32> input "x") {
  %r = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[2, 6]>} : (tensor<[12], f32>) -> tensor<[2, 6], f32> loc("model.py":4:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[2, 6], f32>
}

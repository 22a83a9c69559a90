// RUN: dlcb-opt %s -p dlcb-collect,dlcb-solve --split-input-file | filecheck %s

// CHECK: dlcb.shape.system @pinned {
// CHECK: dlcb.shape.require eq %{{.*}}, %{{.*}} "matmul: model.py:7: inner sizes differ; weight 'w'"
// CHECK: dlcb.graph.func @pinned(%x: tensor<[x_0, 8], f32> input "x",
// CHECK: dlcb.dimensions = {"x.shape[0]" = "free as x_0", "x.shape[1]" = "pinned to 8 by matmul: model.py:7: inner sizes differ; weight 'w'"}
// CHECK: dlcb.graph.exp %x : (tensor<[x_0, 8], f32>) -> tensor<[x_0, 8], f32>
dlcb.graph.func @pinned(%x: tensor<[x_0, x_1], f32> input "x", %w: tensor<[8, 4], f32> weight "w") {
  %e = dlcb.graph.exp %x : (tensor<[x_0, x_1], f32>) -> tensor<[x_0, x_1], f32>
  %r = dlcb.graph.matmul %e, %w : (tensor<[x_0, x_1], f32>, tensor<[8, 4], f32>) -> tensor<[x_0, 4], f32> loc("model.py":7:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0, 4], f32>
}

// -----

// CHECK: dlcb.graph.func @equal(%x: tensor<[x_0], f32> input "x",
// CHECK-NEXT: %y: tensor<[x_0], f32> input "y")
// CHECK-SAME: "y.shape[0]" = "equal to x_0 by concat: model.py:5: sizes of dim 0 differ"
// CHECK: tensor<[x_0, 2], f32>
dlcb.graph.func @equal(%x: tensor<[x_0], f32> input "x", %y: tensor<[y_0], f32> input "y") {
  %a = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[x_0, 1]>} : (tensor<[x_0], f32>) -> tensor<[x_0, 1], f32>
  %b = dlcb.graph.reshape %y {shape = #dlcb.graph.dims<[y_0, 1]>} : (tensor<[y_0], f32>) -> tensor<[y_0, 1], f32>
  %r = dlcb.graph.concat %a, %b {axis = #builtin.int<1>} : (tensor<[x_0, 1], f32>, tensor<[y_0, 1], f32>) -> tensor<[x_0, 2], f32> loc("model.py":5:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0, 2], f32>
}

// -----

// CHECK: dlcb.shape.system @derived {
// CHECK: dlcb.shape.define "d0"
// CHECK-NOT: dlcb.shape.define
// CHECK: %s = dlcb.graph.exp %r : (tensor<[d0], f32>) -> tensor<[d0], f32>
dlcb.graph.func @derived(%x: tensor<[x_0], f32> input "x", %y: tensor<[y_0], f32> input "y") {
  %q = dlcb.graph.concat %x, %y {axis = #builtin.int<0>} : (tensor<[x_0], f32>, tensor<[y_0], f32>) -> tensor<[d0], f32>
  %r = dlcb.graph.concat %y, %x {axis = #builtin.int<0>} : (tensor<[y_0], f32>, tensor<[x_0], f32>) -> tensor<[d1], f32>
  %s = dlcb.graph.exp %r : (tensor<[d1], f32>) -> tensor<[d1], f32>
  dlcb.graph.return %s : !dlcb.graph.tensor<[d1], f32>
}

// -----

// CHECK: dlcb.shape.system @unused {
// CHECK-NOT: dlcb.shape.define
// CHECK: dlcb.graph.func @unused
dlcb.shape.system @unused {
  %n = dlcb.shape.symbol "n" size "x" 0
  %d = dlcb.shape.add %n, %n
  %e = dlcb.shape.define "e" = %d
}
dlcb.graph.func @unused(%x: tensor<[n], f32> input "x") {
  dlcb.graph.return %x : !dlcb.graph.tensor<[n], f32>
}

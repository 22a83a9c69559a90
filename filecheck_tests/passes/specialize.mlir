// RUN: dlcb-opt %s -p 'dlcb-specialize{sizes="x_0=16","k=3"},dlcb-collect,dlcb-solve' --split-input-file | filecheck %s

// A size of an input and an integer argument; what follows from them is a literal too.
// CHECK: dlcb.shape.system @repeated {
// CHECK-NOT: dlcb.shape.define
// CHECK-DAG: dlcb.shape.require eq %x0, %{{.*}} "specialized to this size"
// CHECK-DAG: dlcb.shape.require eq %k, %{{.*}} "specialized to this size"
// CHECK: dlcb.graph.func @repeated(%x: tensor<[16], f32> input "x",
// CHECK-NEXT: %k: index int "k") attributes {dlcb.dimensions = {"x.shape[0]" = "pinned to 16 by specialized to this size"}}
// CHECK: dlcb.graph.expand {{.*}} -> tensor<[3, 16], f32>
// CHECK: dlcb.graph.reshape {{.*}} -> tensor<[48], f32>
dlcb.shape.system @repeated {
  %x0 = dlcb.shape.symbol "x_0" size "x" 0
  %k = dlcb.shape.symbol "k" int "k"
  %0 = dlcb.shape.mul %k, %x0
  %d0 = dlcb.shape.define "d0" = %0
}
dlcb.graph.func @repeated(%x: tensor<[x_0], f32> input "x", %k: index int "k") {
  %a = dlcb.graph.reshape %x {shape = [1, x_0]} : (tensor<[x_0], f32>) -> tensor<[1, x_0], f32>
  %e = dlcb.graph.expand %a {shape = [k, x_0]} : (tensor<[1, x_0], f32>) -> tensor<[k, x_0], f32>
  %r = dlcb.graph.reshape %e {shape = [d0]} : (tensor<[k, x_0], f32>) -> tensor<[d0], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[d0], f32>
}

// -----

// A stride is a symbol as well, and sizes that are not named stay free. Without a system, the types name the sizes.
// CHECK: dlcb.graph.func @partly(%x: tensor<[16, x_1], f32> input "x")
// CHECK: dlcb.graph.exp %x : (tensor<[16, x_1], f32>) -> tensor<[16, x_1], f32>
dlcb.shape.system @partly {
  %k = dlcb.shape.symbol "k" stride "x" 0
}
dlcb.graph.func @partly(%x: tensor<[x_0, x_1], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[x_0, x_1], f32>) -> tensor<[x_0, x_1], f32>
  dlcb.graph.return %e : !dlcb.graph.tensor<[x_0, x_1], f32>
}

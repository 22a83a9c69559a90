// RUN: not dlcb-opt %s -p dlcb-assume-broadcasts 2>&1 | filecheck %s

// CHECK: dlcb-opt: error: dlcb-assume-broadcasts: expected a module after 'solve', got one after 'capture'
dlcb.graph.func @main(%x: tensor<[x_0], f32> input "x") {
  %r = dlcb.graph.exp %x : (tensor<[x_0], f32>) -> tensor<[x_0], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[x_0], f32>
}

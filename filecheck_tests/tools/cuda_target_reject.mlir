// RUN: not dlcb-opt %s -t cuda-c 2>&1 | filecheck %s

dlcb.graph.func @main(%x: tensor<[2], f32> input "x") {
  %y = dlcb.graph.relu %x : (tensor<[2], f32>) -> tensor<[2], f32>
  dlcb.graph.return %y : !dlcb.graph.tensor<[2], f32>
}

// CHECK: dlcb-opt: error: target cuda-c prints kernels of the cuda level; add `--pipeline default` or `--stop-after cuda`

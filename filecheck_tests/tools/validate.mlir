// RUN: dlcb-opt %s --pipeline default --validate 2>&1 | filecheck %s
// RUN: dlcb-opt %s -p dlcb-apply-rules --validate 2>&1 | filecheck %s --check-prefix PASS

dlcb.graph.func @main(%x: tensor<[n, 8], f32> input "x") {
  %y = dlcb.graph.softmax %x {axis = 1} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return %y : !dlcb.graph.tensor<[n, 8], f32>
}

// CHECK: validate: same answers after generalize, collect, solve, simplify, strides, fuse, coordinates, schedule; not evaluated: cuda, host
// PASS: validate: same answers after dlcb-apply-rules

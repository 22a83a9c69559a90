// RUN: dlcb-opt %s | dlcb-opt - | filecheck %s

// CHECK-LABEL: dlcb.graph.func @sums(
dlcb.graph.func @sums(%x: tensor<[n, 3], f16> input "x", %k: tensor<[2, m, 3], i1> input "k") {
  // CHECK: %a = dlcb.graph.cumsum %x {axis = 1} : (tensor<[n, 3], f16>) -> tensor<[n, 3], f16>
  %a = dlcb.graph.cumsum %x {axis = 1} : (tensor<[n, 3], f16>) -> tensor<[n, 3], f16>
  // CHECK-NEXT: %b = dlcb.graph.cumsum %k {axis = 0} : (tensor<[2, m, 3], i1>) -> tensor<[2, m, 3], i64>
  %b = dlcb.graph.cumsum %k {axis = 0} : (tensor<[2, m, 3], i1>) -> tensor<[2, m, 3], i64>
  // CHECK-NEXT: %c = dlcb.graph.cumprod %x {axis = 0} : (tensor<[n, 3], f16>) -> tensor<[n, 3], f32>
  %c = dlcb.graph.cumprod %x {axis = 0} : (tensor<[n, 3], f16>) -> tensor<[n, 3], f32>
  // CHECK-NEXT: %d = dlcb.graph.logcumsumexp %x {axis = 1} : (tensor<[n, 3], f16>) -> tensor<[n, 3], f16>
  %d = dlcb.graph.logcumsumexp %x {axis = 1} : (tensor<[n, 3], f16>) -> tensor<[n, 3], f16>
  dlcb.graph.return
}

// CHECK-LABEL: dlcb.graph.func @extrema(
dlcb.graph.func @extrema(%x: tensor<[n, 3], f32> input "x") {
  // CHECK-NEXT: %a = dlcb.graph.cummax %x {axis = 1} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %a = dlcb.graph.cummax %x {axis = 1} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  // CHECK-NEXT: %b = dlcb.graph.cummin %x {axis = 0} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %b = dlcb.graph.cummin %x {axis = 0} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  // CHECK-NEXT: %c = dlcb.graph.last_position %x, %a {axis = 1} : (tensor<[n, 3], f32>, tensor<[n, 3], f32>) -> tensor<[n, 3], i64>
  %c = dlcb.graph.last_position %x, %a {axis = 1} : (tensor<[n, 3], f32>, tensor<[n, 3], f32>) -> tensor<[n, 3], i64>
  // CHECK-NEXT: %d = dlcb.graph.amax %x {axes = [1], empty, keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  %d = dlcb.graph.amax %x {axes = [1], empty, keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  // CHECK-NEXT: %e = dlcb.graph.position %x, %d {axes = [1]} : (tensor<[n, 3], f32>, tensor<[n, 1], f32>) -> tensor<[n], i64>
  %e = dlcb.graph.position %x, %d {axes = [1]} : (tensor<[n, 3], f32>, tensor<[n, 1], f32>) -> tensor<[n], i64>
  dlcb.graph.return
}

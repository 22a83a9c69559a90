// RUN: dlcb-opt %s | dlcb-opt - | filecheck %s

// Integers narrower than 32 bits, and functions that few models use.

// CHECK-LABEL: dlcb.graph.func @narrow(
dlcb.graph.func @narrow(%u: tensor<[n], ui8> input "u", %s: tensor<[n], i16> input "s") {
  // CHECK: dlcb.graph.full {shape = [], value = 200 : i64} : () -> tensor<[], ui8>
  %k = dlcb.graph.full {shape = [], value = 200 : i64} : () -> tensor<[], ui8>
  // CHECK-NEXT: {{.*}} = dlcb.graph.add %u, %k : (tensor<[n], ui8>, tensor<[], ui8>) -> tensor<[n], ui8>
  %a = dlcb.graph.add %u, %k : (tensor<[n], ui8>, tensor<[], ui8>) -> tensor<[n], ui8>
  // CHECK-NEXT: {{.*}} = dlcb.graph.cast %a : (tensor<[n], ui8>) -> tensor<[n], i8>
  %b = dlcb.graph.cast %a : (tensor<[n], ui8>) -> tensor<[n], i8>
  // CHECK-NEXT: {{.*}} = dlcb.graph.shl %s, %s : (tensor<[n], i16>, tensor<[n], i16>) -> tensor<[n], i16>
  %c = dlcb.graph.shl %s, %s : (tensor<[n], i16>, tensor<[n], i16>) -> tensor<[n], i16>
  // CHECK-NEXT: {{.*}} = dlcb.graph.shr %s, %c : (tensor<[n], i16>, tensor<[n], i16>) -> tensor<[n], i16>
  %d = dlcb.graph.shr %s, %c : (tensor<[n], i16>, tensor<[n], i16>) -> tensor<[n], i16>
  dlcb.graph.return %b, %d : !dlcb.graph.tensor<[n], i8>, !dlcb.graph.tensor<[n], i16>
}

// CHECK-LABEL: dlcb.graph.func @functions(
dlcb.graph.func @functions(%x: tensor<[n], f32> input "x", %y: tensor<[n], f32> input "y") {
  // CHECK: dlcb.graph.asin %x : (tensor<[n], f32>) -> tensor<[n], f32>
  %r0 = dlcb.graph.asin %x : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.acos %r0 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r1 = dlcb.graph.acos %r0 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.atan %r1 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r2 = dlcb.graph.atan %r1 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.sinh %r2 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r3 = dlcb.graph.sinh %r2 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.cosh %r3 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r4 = dlcb.graph.cosh %r3 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.asinh %r4 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r5 = dlcb.graph.asinh %r4 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.acosh %r5 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r6 = dlcb.graph.acosh %r5 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.atanh %r6 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r7 = dlcb.graph.atanh %r6 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.erfc %r7 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r8 = dlcb.graph.erfc %r7 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.lgamma %r8 : (tensor<[n], f32>) -> tensor<[n], f32>
  %r9 = dlcb.graph.lgamma %r8 : (tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.hypot %r9, %y : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  %hypot = dlcb.graph.hypot %r9, %y : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.copysign %hypot, %y : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  %copysign = dlcb.graph.copysign %hypot, %y : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  // CHECK-NEXT: {{.*}} = dlcb.graph.fma %x, %y, %copysign : (tensor<[n], f32>, tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  %r = dlcb.graph.fma %x, %y, %copysign : (tensor<[n], f32>, tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n], f32>
}

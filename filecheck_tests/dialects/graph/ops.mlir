// RUN: dlcb-opt %s | dlcb-opt - | filecheck %s

// Every op of the dialect, and every optional property.

// CHECK-LABEL: dlcb.graph.func @unary(
dlcb.graph.func @unary(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.neg %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r1 = dlcb.graph.abs %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r2 = dlcb.graph.sign %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r3 = dlcb.graph.exp %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r4 = dlcb.graph.exp2 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r5 = dlcb.graph.expm1 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r6 = dlcb.graph.log %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r7 = dlcb.graph.log2 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r8 = dlcb.graph.log10 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r9 = dlcb.graph.log1p %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r10 = dlcb.graph.sqrt %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r11 = dlcb.graph.rsqrt %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r12 = dlcb.graph.sin %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r13 = dlcb.graph.cos %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r14 = dlcb.graph.tan %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r15 = dlcb.graph.tanh %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r16 = dlcb.graph.erf %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r17 = dlcb.graph.floor %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r18 = dlcb.graph.ceil %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r19 = dlcb.graph.trunc %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r20 = dlcb.graph.round %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r21 = dlcb.graph.relu %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r22 = dlcb.graph.sigmoid %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r23 = dlcb.graph.silu %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r24 = dlcb.graph.gelu %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r25 = dlcb.graph.gelu_tanh %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  %r26 = dlcb.graph.isnan %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], i1>
  %r27 = dlcb.graph.cast %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], bf16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.neg %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r1 = dlcb.graph.abs %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r2 = dlcb.graph.sign %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r3 = dlcb.graph.exp %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r4 = dlcb.graph.exp2 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r5 = dlcb.graph.expm1 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r6 = dlcb.graph.log %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r7 = dlcb.graph.log2 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r8 = dlcb.graph.log10 %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r9 = dlcb.graph.log1p %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r10 = dlcb.graph.sqrt %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r11 = dlcb.graph.rsqrt %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r12 = dlcb.graph.sin %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r13 = dlcb.graph.cos %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r14 = dlcb.graph.tan %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r15 = dlcb.graph.tanh %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r16 = dlcb.graph.erf %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r17 = dlcb.graph.floor %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r18 = dlcb.graph.ceil %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r19 = dlcb.graph.trunc %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r20 = dlcb.graph.round %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r21 = dlcb.graph.relu %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r22 = dlcb.graph.sigmoid %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r23 = dlcb.graph.silu %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r24 = dlcb.graph.gelu %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r25 = dlcb.graph.gelu_tanh %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r26 = dlcb.graph.isnan %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r27 = dlcb.graph.cast %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], bf16>

// CHECK-LABEL: dlcb.graph.func @binary(
dlcb.graph.func @binary(%x: tensor<[n, 3], f32> input "x", %y: tensor<[3], f32> weight "y", %c: tensor<[n, 1], i1> input "c") {
  %r0 = dlcb.graph.add %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r1 = dlcb.graph.sub %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r2 = dlcb.graph.mul %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r3 = dlcb.graph.div %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r4 = dlcb.graph.floordiv %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r5 = dlcb.graph.truncdiv %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r6 = dlcb.graph.mod %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r7 = dlcb.graph.fmod %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r8 = dlcb.graph.pow %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r9 = dlcb.graph.atan2 %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r10 = dlcb.graph.maximum %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r11 = dlcb.graph.minimum %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  %r12 = dlcb.graph.eq %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
  %r13 = dlcb.graph.ne %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
  %r14 = dlcb.graph.lt %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
  %r15 = dlcb.graph.le %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
  %r16 = dlcb.graph.gt %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
  %r17 = dlcb.graph.ge %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
  %r18 = dlcb.graph.where %c, %x, %y : (tensor<[n, 1], i1>, tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.add %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r1 = dlcb.graph.sub %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r2 = dlcb.graph.mul %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r3 = dlcb.graph.div %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r4 = dlcb.graph.floordiv %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r5 = dlcb.graph.truncdiv %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r6 = dlcb.graph.mod %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r7 = dlcb.graph.fmod %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r8 = dlcb.graph.pow %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r9 = dlcb.graph.atan2 %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r10 = dlcb.graph.maximum %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r11 = dlcb.graph.minimum %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
// CHECK-NEXT: %r12 = dlcb.graph.eq %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r13 = dlcb.graph.ne %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r14 = dlcb.graph.lt %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r15 = dlcb.graph.le %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r16 = dlcb.graph.gt %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r17 = dlcb.graph.ge %x, %y : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], i1>
// CHECK-NEXT: %r18 = dlcb.graph.where %c, %x, %y : (tensor<[n, 1], i1>, tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>

// CHECK-LABEL: dlcb.graph.func @bits(
dlcb.graph.func @bits(%x: tensor<[4], i32> input "x", %y: tensor<[4], i32> input "y") {
  %r0 = dlcb.graph.and %x, %y : (tensor<[4], i32>, tensor<[4], i32>) -> tensor<[4], i32>
  %r1 = dlcb.graph.or %x, %y : (tensor<[4], i32>, tensor<[4], i32>) -> tensor<[4], i32>
  %r2 = dlcb.graph.xor %x, %y : (tensor<[4], i32>, tensor<[4], i32>) -> tensor<[4], i32>
  %r3 = dlcb.graph.not %x : (tensor<[4], i32>) -> tensor<[4], i32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.and %x, %y : (tensor<[4], i32>, tensor<[4], i32>) -> tensor<[4], i32>
// CHECK-NEXT: %r1 = dlcb.graph.or %x, %y : (tensor<[4], i32>, tensor<[4], i32>) -> tensor<[4], i32>
// CHECK-NEXT: %r2 = dlcb.graph.xor %x, %y : (tensor<[4], i32>, tensor<[4], i32>) -> tensor<[4], i32>
// CHECK-NEXT: %r3 = dlcb.graph.not %x : (tensor<[4], i32>) -> tensor<[4], i32>

// CHECK-LABEL: dlcb.graph.func @full(
dlcb.graph.func @full() {
  %r0 = dlcb.graph.full {shape = [2, 3], value = 1.500000e+00 : f64} : () -> tensor<[2, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.full {shape = [2, 3], value = 1.500000e+00 : f64} : () -> tensor<[2, 3], f32>

// CHECK-LABEL: dlcb.graph.func @iota(
dlcb.graph.func @iota(%x: tensor<[n, m], f32> input "x") {
  %r0 = dlcb.graph.iota {start = [3], step = [2], shape = [4]} : () -> tensor<[4], i64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.iota {start = [3], step = [2], shape = [4]} : () -> tensor<[4], i64>

// CHECK-LABEL: dlcb.graph.func @size(
dlcb.graph.func @size(%x: tensor<[n], f32> input "x") {
  %r0 = dlcb.graph.size {dim = [n], shape = []} : () -> tensor<[], i64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.size {dim = [n], shape = []} : () -> tensor<[], i64>

// CHECK-LABEL: dlcb.graph.func @reshape(
dlcb.graph.func @reshape(%x: tensor<[2, 3, 4], f32> input "x") {
  %r0 = dlcb.graph.reshape %x {shape = [6, 4]} : (tensor<[2, 3, 4], f32>) -> tensor<[6, 4], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.reshape %x {shape = [6, 4]} : (tensor<[2, 3, 4], f32>) -> tensor<[6, 4], f32>

// CHECK-LABEL: dlcb.graph.func @permute(
dlcb.graph.func @permute(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.permute %x {order = [1, 0]} : (tensor<[n, 3], f32>) -> tensor<[3, n], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.permute %x {order = [1, 0]} : (tensor<[n, 3], f32>) -> tensor<[3, n], f32>

// CHECK-LABEL: dlcb.graph.func @expand(
dlcb.graph.func @expand(%x: tensor<[1, 3], f32> input "x") {
  %r0 = dlcb.graph.expand %x {shape = [4, 3]} : (tensor<[1, 3], f32>) -> tensor<[4, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.expand %x {shape = [4, 3]} : (tensor<[1, 3], f32>) -> tensor<[4, 3], f32>

// CHECK-LABEL: dlcb.graph.func @slice(
dlcb.graph.func @slice(%x: tensor<[7], f32> input "x") {
  %r0 = dlcb.graph.slice %x {starts = [2], shape = [3], steps = [1]} : (tensor<[7], f32>) -> tensor<[3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.slice %x {starts = [2], shape = [3], steps = [1]} : (tensor<[7], f32>) -> tensor<[3], f32>

// CHECK-LABEL: dlcb.graph.func @copy(
dlcb.graph.func @copy(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.copy %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.copy %x : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>

// CHECK-LABEL: dlcb.graph.func @flip(
dlcb.graph.func @flip(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.flip %x {axes = [0]} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.flip %x {axes = [0]} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>

// CHECK-LABEL: dlcb.graph.func @pad(
dlcb.graph.func @pad(%x: tensor<[3, 4], f32> input "x") {
  %r0 = dlcb.graph.pad %x {low = [1, 0], high = [0, 2], value = 5.000000e-01 : f64} : (tensor<[3, 4], f32>) -> tensor<[4, 6], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.pad %x {low = [1, 0], high = [0, 2], value = 5.000000e-01 : f64} : (tensor<[3, 4], f32>) -> tensor<[4, 6], f32>

// CHECK-LABEL: dlcb.graph.func @concat(
dlcb.graph.func @concat(%x: tensor<[2, 3], f32> input "x", %y: tensor<[4, 3], f32> input "y") {
  %r0 = dlcb.graph.concat %x, %y {axis = 0} : (tensor<[2, 3], f32>, tensor<[4, 3], f32>) -> tensor<[6, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.concat %x, %y {axis = 0} : (tensor<[2, 3], f32>, tensor<[4, 3], f32>) -> tensor<[6, 3], f32>

// CHECK-LABEL: dlcb.graph.func @concat_1(
dlcb.graph.func @concat_1(%x: tensor<[2, n, 3], f16> input "x", %y: tensor<[2, m, 3], f16> input "y", %w: tensor<[2, 1, 3], f16> input "w") {
  %r0 = dlcb.graph.concat %x, %y, %w {axis = 1} : (tensor<[2, n, 3], f16>, tensor<[2, m, 3], f16>, tensor<[2, 1, 3], f16>) -> tensor<[2, d0, 3], f16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.concat %x, %y, %w {axis = 1} : (tensor<[2, n, 3], f16>, tensor<[2, m, 3], f16>, tensor<[2, 1, 3], f16>) -> tensor<[2, d0, 3], f16>

// CHECK-LABEL: dlcb.graph.func @concat_2(
dlcb.graph.func @concat_2(%x: tensor<[2, 3], bf16> input "x") {
  %r0 = dlcb.graph.concat %x {axis = 1} : (tensor<[2, 3], bf16>) -> tensor<[2, 3], bf16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.concat %x {axis = 1} : (tensor<[2, 3], bf16>) -> tensor<[2, 3], bf16>

// CHECK-LABEL: dlcb.graph.func @insert(
dlcb.graph.func @insert(%x: tensor<[7, 3], f32> input "x", %y: tensor<[2, 3], f32> input "y") {
  %r0 = dlcb.graph.insert %x, %y {starts = [4, 0], steps = [1, 1]} : (tensor<[7, 3], f32>, tensor<[2, 3], f32>) -> tensor<[7, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.insert %x, %y {starts = [4, 0], steps = [1, 1]} : (tensor<[7, 3], f32>, tensor<[2, 3], f32>) -> tensor<[7, 3], f32>

// CHECK-LABEL: dlcb.graph.func @sum(
dlcb.graph.func @sum(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.sum %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.sum %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>

// CHECK-LABEL: dlcb.graph.func @sum_1(
dlcb.graph.func @sum_1(%x: tensor<[2, m, 3, 5], f32> input "x") {
  %r0 = dlcb.graph.sum %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.sum %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>

// CHECK-LABEL: dlcb.graph.func @prod(
dlcb.graph.func @prod(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.prod %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.prod %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>

// CHECK-LABEL: dlcb.graph.func @prod_1(
dlcb.graph.func @prod_1(%x: tensor<[2, m, 3, 5], f32> input "x") {
  %r0 = dlcb.graph.prod %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.prod %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>

// CHECK-LABEL: dlcb.graph.func @mean(
dlcb.graph.func @mean(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.mean %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.mean %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>

// CHECK-LABEL: dlcb.graph.func @mean_1(
dlcb.graph.func @mean_1(%x: tensor<[2, m, 3, 5], f32> input "x") {
  %r0 = dlcb.graph.mean %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.mean %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>

// CHECK-LABEL: dlcb.graph.func @amax(
dlcb.graph.func @amax(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.amax %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.amax %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>

// CHECK-LABEL: dlcb.graph.func @amax_1(
dlcb.graph.func @amax_1(%x: tensor<[2, m, 3, 5], f32> input "x") {
  %r0 = dlcb.graph.amax %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.amax %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>

// CHECK-LABEL: dlcb.graph.func @amin(
dlcb.graph.func @amin(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.amin %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.amin %x {axes = [1], keep} : (tensor<[n, 3], f32>) -> tensor<[n, 1], f32>

// CHECK-LABEL: dlcb.graph.func @amin_1(
dlcb.graph.func @amin_1(%x: tensor<[2, m, 3, 5], f32> input "x") {
  %r0 = dlcb.graph.amin %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.amin %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], f32>) -> tensor<[2, 3], f32>

// CHECK-LABEL: dlcb.graph.func @any(
dlcb.graph.func @any(%x: tensor<[n, 3], i1> input "x") {
  %r0 = dlcb.graph.any %x {axes = [1], keep} : (tensor<[n, 3], i1>) -> tensor<[n, 1], i1>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.any %x {axes = [1], keep} : (tensor<[n, 3], i1>) -> tensor<[n, 1], i1>

// CHECK-LABEL: dlcb.graph.func @any_1(
dlcb.graph.func @any_1(%x: tensor<[2, m, 3, 5], i1> input "x") {
  %r0 = dlcb.graph.any %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], i1>) -> tensor<[2, 3], i1>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.any %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], i1>) -> tensor<[2, 3], i1>

// CHECK-LABEL: dlcb.graph.func @all(
dlcb.graph.func @all(%x: tensor<[n, 3], i1> input "x") {
  %r0 = dlcb.graph.all %x {axes = [1], keep} : (tensor<[n, 3], i1>) -> tensor<[n, 1], i1>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.all %x {axes = [1], keep} : (tensor<[n, 3], i1>) -> tensor<[n, 1], i1>

// CHECK-LABEL: dlcb.graph.func @all_1(
dlcb.graph.func @all_1(%x: tensor<[2, m, 3, 5], i1> input "x") {
  %r0 = dlcb.graph.all %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], i1>) -> tensor<[2, 3], i1>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.all %x {axes = [1, 3]} : (tensor<[2, m, 3, 5], i1>) -> tensor<[2, 3], i1>

// CHECK-LABEL: dlcb.graph.func @max_pool(
dlcb.graph.func @max_pool(%x: tensor<[2, 3, 8, 9], f32> input "x") {
  %r0 = dlcb.graph.max_pool %x {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, 8, 9], f32>) -> tensor<[2, 3, 4, 5], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.max_pool %x {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, 8, 9], f32>) -> tensor<[2, 3, 4, 5], f32>

// CHECK-LABEL: dlcb.graph.func @pool_position(
dlcb.graph.func @pool_position(%x: tensor<[2, 3, 8, 9], f32> input "x", %p: tensor<[2, 3, 4, 5], f32> input "p") {
  %r0 = dlcb.graph.pool_position %x, %p {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, 8, 9], f32>, tensor<[2, 3, 4, 5], f32>) -> tensor<[2, 3, 4, 5], i64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.pool_position %x, %p {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, 8, 9], f32>, tensor<[2, 3, 4, 5], f32>) -> tensor<[2, 3, 4, 5], i64>

// CHECK-LABEL: dlcb.graph.func @unfold(
dlcb.graph.func @unfold(%x: tensor<[2, n], f16> input "x") {
  %r0 = dlcb.graph.unfold %x {axis = 1, dilation = 2, size = 3, step = 2} : (tensor<[2, n], f16>) -> tensor<[2, d0, 3], f16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.unfold %x {axis = 1, dilation = 2, size = 3, step = 2} : (tensor<[2, n], f16>) -> tensor<[2, d0, 3], f16>

// CHECK-LABEL: dlcb.graph.func @diagonal(
dlcb.graph.func @diagonal(%x: tensor<[n, m, 4], f32> input "x") {
  %r0 = dlcb.graph.diagonal %x {offset = -1, first = 0, second = 2} : (tensor<[n, m, 4], f32>) -> tensor<[m, d0], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.diagonal %x {offset = -1, first = 0, second = 2} : (tensor<[n, m, 4], f32>) -> tensor<[m, d0], f32>

// CHECK-LABEL: dlcb.graph.func @scatter(
dlcb.graph.func @scatter(%x: tensor<[n, 4], f32> input "x", %i: tensor<[2, 3], i64> input "i", %s: tensor<[2, 3], f32> input "s") {
  %r0 = dlcb.graph.scatter %x, %i, %s {axis = 0} : (tensor<[n, 4], f32>, tensor<[2, 3], i64>, tensor<[2, 3], f32>) -> tensor<[n, 4], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.scatter %x, %i, %s {axis = 0} : (tensor<[n, 4], f32>, tensor<[2, 3], i64>, tensor<[2, 3], f32>) -> tensor<[n, 4], f32>

// CHECK-LABEL: dlcb.graph.func @max_pool_1(
dlcb.graph.func @max_pool_1(%x: tensor<[1, 2, h, 6], bf16> input "x") {
  %r0 = dlcb.graph.max_pool %x {kernel = [3, 2], stride = [2, 1], padding = [1, 1], dilation = [2, 1], ceil} : (tensor<[1, 2, h, 6], bf16>) -> tensor<[1, 2, d0, 7], bf16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.max_pool %x {kernel = [3, 2], stride = [2, 1], padding = [1, 1], dilation = [2, 1], ceil} : (tensor<[1, 2, h, 6], bf16>) -> tensor<[1, 2, d0, 7], bf16>

// CHECK-LABEL: dlcb.graph.func @avg_pool(
dlcb.graph.func @avg_pool(%x: tensor<[2, 3, 8, 9], f32> input "x") {
  %r0 = dlcb.graph.avg_pool %x {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1], count_padding} : (tensor<[2, 3, 8, 9], f32>) -> tensor<[2, 3, 4, 5], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.avg_pool %x {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1], count_padding} : (tensor<[2, 3, 8, 9], f32>) -> tensor<[2, 3, 4, 5], f32>

// CHECK-LABEL: dlcb.graph.func @avg_pool_1(
dlcb.graph.func @avg_pool_1(%x: tensor<[2, 3, 8, 9], f32> input "x") {
  %r0 = dlcb.graph.avg_pool %x {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, 8, 9], f32>) -> tensor<[2, 3, 4, 5], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.avg_pool %x {kernel = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, 8, 9], f32>) -> tensor<[2, 3, 4, 5], f32>

// CHECK-LABEL: dlcb.graph.func @avg_pool_2(
dlcb.graph.func @avg_pool_2(%x: tensor<[2, 3, 7], f64> input "x") {
  %r0 = dlcb.graph.avg_pool %x {kernel = [3], stride = [2], padding = [0], dilation = [1], ceil, count_padding} : (tensor<[2, 3, 7], f64>) -> tensor<[2, 3, 3], f64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.avg_pool %x {kernel = [3], stride = [2], padding = [0], dilation = [1], ceil, count_padding} : (tensor<[2, 3, 7], f64>) -> tensor<[2, 3, 3], f64>

// CHECK-LABEL: dlcb.graph.func @avg_pool_3(
dlcb.graph.func @avg_pool_3(%x: tensor<[2, 3, 7], f64> input "x") {
  %r0 = dlcb.graph.avg_pool %x {kernel = [3], stride = [2], padding = [0], dilation = [1], ceil} : (tensor<[2, 3, 7], f64>) -> tensor<[2, 3, 3], f64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.avg_pool %x {kernel = [3], stride = [2], padding = [0], dilation = [1], ceil} : (tensor<[2, 3, 7], f64>) -> tensor<[2, 3, 3], f64>

// CHECK-LABEL: dlcb.graph.func @avg_pool_4(
dlcb.graph.func @avg_pool_4(%x: tensor<[2, 3, n, m], f32> input "x") {
  %r0 = dlcb.graph.avg_pool %x {divisor = 3, kernel = [2, 2], stride = [1, 1], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, n, m], f32>) -> tensor<[2, 3, d0, d1], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.avg_pool %x {divisor = 3, kernel = [2, 2], stride = [1, 1], padding = [1, 1], dilation = [1, 1]} : (tensor<[2, 3, n, m], f32>) -> tensor<[2, 3, d0, d1], f32>

// CHECK-LABEL: dlcb.graph.func @take(
dlcb.graph.func @take(%x: tensor<[n, 3], f32> input "x", %y: tensor<[4], i64> input "y") {
  %r0 = dlcb.graph.take %x, %y {axis = 0} : (tensor<[n, 3], f32>, tensor<[4], i64>) -> tensor<[4, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.take %x, %y {axis = 0} : (tensor<[n, 3], f32>, tensor<[4], i64>) -> tensor<[4, 3], f32>

// CHECK-LABEL: dlcb.graph.func @bounded(
dlcb.graph.func @bounded(%y: tensor<[4], i32> input "y") {
  %r0 = dlcb.graph.bounded %y {axis = 1, call = "index", error = "RuntimeError", nonnegative, extent = [n]} : (tensor<[4], i32>) -> tensor<[4], i64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.bounded %y {axis = 1, call = "index", error = "RuntimeError", nonnegative, extent = [n]} : (tensor<[4], i32>) -> tensor<[4], i64>

// CHECK-LABEL: dlcb.graph.func @gather(
dlcb.graph.func @gather(%x: tensor<[n, 3], f32> input "x", %y: tensor<[4, 3], i64> input "y") {
  %r0 = dlcb.graph.gather %x, %y {axis = 0} : (tensor<[n, 3], f32>, tensor<[4, 3], i64>) -> tensor<[4, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.gather %x, %y {axis = 0} : (tensor<[n, 3], f32>, tensor<[4, 3], i64>) -> tensor<[4, 3], f32>

// CHECK-LABEL: dlcb.graph.func @put(
dlcb.graph.func @put(%x: tensor<[n, 3], f32> input "x", %y: tensor<[3], i64> input "y", %w: tensor<[3, 3], f32> input "w") {
  %r0 = dlcb.graph.put %x, %y, %w {axis = 0} : (tensor<[n, 3], f32>, tensor<[3], i64>, tensor<[3, 3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.put %x, %y, %w {axis = 0} : (tensor<[n, 3], f32>, tensor<[3], i64>, tensor<[3, 3], f32>) -> tensor<[n, 3], f32>

// CHECK-LABEL: dlcb.graph.func @matmul(
dlcb.graph.func @matmul(%x: tensor<[n, 4], f32> input "x", %y: tensor<[4, m], f32> input "y") {
  %r0 = dlcb.graph.matmul %x, %y : (tensor<[n, 4], f32>, tensor<[4, m], f32>) -> tensor<[n, m], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.matmul %x, %y : (tensor<[n, 4], f32>, tensor<[4, m], f32>) -> tensor<[n, m], f32>

// CHECK-LABEL: dlcb.graph.func @matmul_1(
dlcb.graph.func @matmul_1(%x: tensor<[3, 4], f32> input "x", %y: tensor<[4, 5], f32> input "y", %w: tensor<[5], f32> input "w") {
  %r0 = dlcb.graph.matmul %x, %y, %w : (tensor<[3, 4], f32>, tensor<[4, 5], f32>, tensor<[5], f32>) -> tensor<[3, 5], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.matmul %x, %y, %w : (tensor<[3, 4], f32>, tensor<[4, 5], f32>, tensor<[5], f32>) -> tensor<[3, 5], f32>

// CHECK-LABEL: dlcb.graph.func @convolution(
dlcb.graph.func @convolution(%x: tensor<[2, 3, 8, 9], f32> input "x", %y: tensor<[4, 3, 3, 3], f32> input "y", %w: tensor<[4], f32> input "w") {
  %r0 = dlcb.graph.convolution %x, %y, %w {stride = [2, 2], padding = [1, 1], dilation = [1, 1], groups = 1} : (tensor<[2, 3, 8, 9], f32>, tensor<[4, 3, 3, 3], f32>, tensor<[4], f32>) -> tensor<[2, 4, 4, 5], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.convolution %x, %y, %w {stride = [2, 2], padding = [1, 1], dilation = [1, 1], groups = 1} : (tensor<[2, 3, 8, 9], f32>, tensor<[4, 3, 3, 3], f32>, tensor<[4], f32>) -> tensor<[2, 4, 4, 5], f32>

// CHECK-LABEL: dlcb.graph.func @convolution_1(
dlcb.graph.func @convolution_1(%x: tensor<[2, 4, n, m], f16> input "x", %y: tensor<[6, 2, 3, 2], f16> input "y") {
  %r0 = dlcb.graph.convolution %x, %y {stride = [1, 2], padding = [1, 0], dilation = [1, 1], groups = 2} : (tensor<[2, 4, n, m], f16>, tensor<[6, 2, 3, 2], f16>) -> tensor<[2, 6, n, d0], f16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.convolution %x, %y {stride = [1, 2], padding = [1, 0], dilation = [1, 1], groups = 2} : (tensor<[2, 4, n, m], f16>, tensor<[6, 2, 3, 2], f16>) -> tensor<[2, 6, n, d0], f16>

// CHECK-LABEL: dlcb.graph.func @convolution_2(
dlcb.graph.func @convolution_2(%x: tensor<[2, 4, n, 5], f32> input "x", %y: tensor<[4, 3, 3, 2], f32> input "y") {
  %r0 = dlcb.graph.convolution %x, %y {stride = [2, 1], padding = [1, 0], dilation = [1, 2], groups = 1, transposed, output_padding = [1, 0]} : (tensor<[2, 4, n, 5], f32>, tensor<[4, 3, 3, 2], f32>) -> tensor<[2, 3, d0, 7], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.convolution %x, %y {stride = [2, 1], padding = [1, 0], dilation = [1, 2], groups = 1, transposed, output_padding = [1, 0]} : (tensor<[2, 4, n, 5], f32>, tensor<[4, 3, 3, 2], f32>) -> tensor<[2, 3, d0, 7], f32>

// CHECK-LABEL: dlcb.graph.func @convolution_3(
dlcb.graph.func @convolution_3(%x: tensor<[2, 4, 6], f32> input "x", %y: tensor<[4, 3, 3], f32> input "y", %w: tensor<[6], f32> input "w") {
  %r0 = dlcb.graph.convolution %x, %y, %w {stride = [2], padding = [1], dilation = [1], groups = 2, transposed, output_padding = [0]} : (tensor<[2, 4, 6], f32>, tensor<[4, 3, 3], f32>, tensor<[6], f32>) -> tensor<[2, 6, 11], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.convolution %x, %y, %w {stride = [2], padding = [1], dilation = [1], groups = 2, transposed, output_padding = [0]} : (tensor<[2, 4, 6], f32>, tensor<[4, 3, 3], f32>, tensor<[6], f32>) -> tensor<[2, 6, 11], f32>

// CHECK-LABEL: dlcb.graph.func @attention(
dlcb.graph.func @attention(%x: tensor<[2, 3, 5, 4], f32> input "x", %y: tensor<[2, 3, 7, 4], f32> input "y", %w: tensor<[2, 3, 7, 6], f32> input "w") {
  %r0 = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64} : (tensor<[2, 3, 5, 4], f32>, tensor<[2, 3, 7, 4], f32>, tensor<[2, 3, 7, 6], f32>) -> tensor<[2, 3, 5, 6], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64} : (tensor<[2, 3, 5, 4], f32>, tensor<[2, 3, 7, 4], f32>, tensor<[2, 3, 7, 6], f32>) -> tensor<[2, 3, 5, 6], f32>

// CHECK-LABEL: dlcb.graph.func @attention_1(
dlcb.graph.func @attention_1(%x: tensor<[b, 2, n, 4], f16> input "x", %y: tensor<[b, 2, n, 4], f16> input "y", %w: tensor<[b, 2, n, 4], f16> input "w") {
  %r0 = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64, causal} : (tensor<[b, 2, n, 4], f16>, tensor<[b, 2, n, 4], f16>, tensor<[b, 2, n, 4], f16>) -> tensor<[b, 2, n, 4], f16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64, causal} : (tensor<[b, 2, n, 4], f16>, tensor<[b, 2, n, 4], f16>, tensor<[b, 2, n, 4], f16>) -> tensor<[b, 2, n, 4], f16>

// CHECK-LABEL: dlcb.graph.func @attention_2(
dlcb.graph.func @attention_2(%x: tensor<[2, 4, 3, 4], f64> input "x", %y: tensor<[2, 2, n, 4], f64> input "y", %w: tensor<[2, 2, n, 4], f64> input "w") {
  %r0 = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64, grouped} : (tensor<[2, 4, 3, 4], f64>, tensor<[2, 2, n, 4], f64>, tensor<[2, 2, n, 4], f64>) -> tensor<[2, 4, 3, 4], f64>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64, grouped} : (tensor<[2, 4, 3, 4], f64>, tensor<[2, 2, n, 4], f64>, tensor<[2, 2, n, 4], f64>) -> tensor<[2, 4, 3, 4], f64>

// CHECK-LABEL: dlcb.graph.func @softmax(
dlcb.graph.func @softmax(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.softmax %x {axis = 1} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.softmax %x {axis = 1} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>

// CHECK-LABEL: dlcb.graph.func @log_softmax(
dlcb.graph.func @log_softmax(%x: tensor<[n, 3], f32> input "x") {
  %r0 = dlcb.graph.log_softmax %x {axis = 1} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.log_softmax %x {axis = 1} : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>

// CHECK-LABEL: dlcb.graph.func @layer_norm(
dlcb.graph.func @layer_norm(%x: tensor<[n, 8], f32> input "x") {
  %r0 = dlcb.graph.layer_norm %x {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.layer_norm %x {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>

// CHECK-LABEL: dlcb.graph.func @layer_norm_1(
dlcb.graph.func @layer_norm_1(%x: tensor<[2, n, 8], f16> input "x", %y: tensor<[8], f16> input "y") {
  %r0 = dlcb.graph.layer_norm %x, %y {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[2, n, 8], f16>, tensor<[8], f16>) -> tensor<[2, n, 8], f16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.layer_norm %x, %y {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[2, n, 8], f16>, tensor<[8], f16>) -> tensor<[2, n, 8], f16>

// CHECK-LABEL: dlcb.graph.func @layer_norm_2(
dlcb.graph.func @layer_norm_2(%x: tensor<[2, 3, 8], bf16> input "x", %y: tensor<[3, 8], bf16> input "y", %w: tensor<[3, 8], bf16> input "w") {
  %r0 = dlcb.graph.layer_norm %x, %y, %w {axes = 2, eps = 1.000000e-05 : f64} : (tensor<[2, 3, 8], bf16>, tensor<[3, 8], bf16>, tensor<[3, 8], bf16>) -> tensor<[2, 3, 8], bf16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.layer_norm %x, %y, %w {axes = 2, eps = 1.000000e-05 : f64} : (tensor<[2, 3, 8], bf16>, tensor<[3, 8], bf16>, tensor<[3, 8], bf16>) -> tensor<[2, 3, 8], bf16>

// CHECK-LABEL: dlcb.graph.func @rms_norm(
dlcb.graph.func @rms_norm(%x: tensor<[n, 8], f32> input "x") {
  %r0 = dlcb.graph.rms_norm %x {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.rms_norm %x {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>

// CHECK-LABEL: dlcb.graph.func @batch_norm(
dlcb.graph.func @batch_norm(%x: tensor<[2, 3, n, m], f32> input "x", %y: tensor<[3], f32> input "y", %w: tensor<[3], f32> input "w", %u: tensor<[3], f32> input "u", %v: tensor<[3], f32> input "v") {
  %r0 = dlcb.graph.batch_norm %x, %y, %w, %u, %v {eps = 1.000000e-05 : f64} : (tensor<[2, 3, n, m], f32>, tensor<[3], f32>, tensor<[3], f32>, tensor<[3], f32>, tensor<[3], f32>) -> tensor<[2, 3, n, m], f32>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.batch_norm %x, %y, %w, %u, %v {eps = 1.000000e-05 : f64} : (tensor<[2, 3, n, m], f32>, tensor<[3], f32>, tensor<[3], f32>, tensor<[3], f32>, tensor<[3], f32>) -> tensor<[2, 3, n, m], f32>

// CHECK-LABEL: dlcb.graph.func @batch_norm_1(
dlcb.graph.func @batch_norm_1(%x: tensor<[n, 3], f16> input "x", %y: tensor<[3], f16> input "y", %w: tensor<[3], f16> input "w") {
  %r0 = dlcb.graph.batch_norm %x, %y, %w {eps = 1.000000e-05 : f64} : (tensor<[n, 3], f16>, tensor<[3], f16>, tensor<[3], f16>) -> tensor<[n, 3], f16>
  dlcb.graph.return
}
// CHECK: %r0 = dlcb.graph.batch_norm %x, %y, %w {eps = 1.000000e-05 : f64} : (tensor<[n, 3], f16>, tensor<[3], f16>, tensor<[3], f16>) -> tensor<[n, 3], f16>

// CHECK-LABEL: dlcb.graph.func @placed(
dlcb.graph.func @placed(%x: tensor<[n, m], f32> input "x") {
  dlcb.graph.return %x, %x : !dlcb.graph.tensor<[n, m], f32>, !dlcb.graph.tensor<[n, m], f32>
      {aliases = [[#builtin.int<0>, #builtin.int<0>]], layouts = [#dlcb.graph.strided<[a, 1]>, #dlcb.graph.dense<[1, 0]>], views = [!dlcb.graph.tensor<[m], f32, strided<[1], a>>, unit]}
}
// CHECK: layouts = [#dlcb.graph.strided<[a, 1]>, #dlcb.graph.dense<[1, 0]>], views = [!dlcb.graph.tensor<[m], f32, strided<[1], a>>, unit]

// CHECK-LABEL: dlcb.graph.func @structure(%x: tensor<[n, 3], f16, strided<[s, 1], 4>> input "x",
// CHECK-NEXT: %w: tensor<[n, 3], f16, dense<[1, 0]>> weight "w",
// CHECK-NEXT: %k: index int "k",
// CHECK-NEXT: %a: tensor<*, i64> input "a") attributes {dlcb.stage = "fuse"} {
dlcb.graph.func @structure(%x: tensor<[n, 3], f16, strided<[s, 1], 4>> input "x", %w: tensor<[n, 3], f16, dense<[1, 0]>> weight "w",
    %k: index int "k", %a: tensor<*, i64> input "a") attributes {dlcb.stage = "fuse"} {
  // CHECK-NEXT: %r = dlcb.graph.kernel(%b = %x : tensor<[n, 3], f16, strided<[s, 1], 4>>) -> (tensor<[n, 3], f16>) attributes {in_place = {{\[\[}}#builtin.int<0>, #builtin.int<0>]]} {
  // CHECK-NEXT: %c = dlcb.graph.neg %b : (tensor<[n, 3], f16, strided<[s, 1], 4>>) -> tensor<[n, 3], f16>
  // CHECK-NEXT: dlcb.graph.yield %c : !dlcb.graph.tensor<[n, 3], f16>
  // CHECK-NEXT: }
  %r = dlcb.graph.kernel(%b = %x : tensor<[n, 3], f16, strided<[s, 1], 4>>) -> (tensor<[n, 3], f16>)
      attributes {in_place = [[#builtin.int<0>, #builtin.int<0>]]} {
    %c = dlcb.graph.neg %b : (tensor<[n, 3], f16, strided<[s, 1], 4>>) -> tensor<[n, 3], f16>
    dlcb.graph.yield %c : !dlcb.graph.tensor<[n, 3], f16>
  }
  // CHECK-NEXT: %l = dlcb.graph.launch(%r) {forms = [{kernel = @k0, when = "d3", bindings = {p0 = "n", p1 = 64 : i64}}]} : (!dlcb.graph.tensor<[n, 3], f16>) -> !dlcb.graph.tensor<[n, 3], f16>
  %l = dlcb.graph.launch(%r) {forms = [{kernel = @k0, when = "d3", bindings = {p0 = "n", p1 = 64}}]}
      : (!dlcb.graph.tensor<[n, 3], f16>) -> !dlcb.graph.tensor<[n, 3], f16>
  // CHECK-NEXT: dlcb.graph.launch(%r) {forms = [], failures = {{\[\[}}"RuntimeError", "index {0} of {1}"]]} : (!dlcb.graph.tensor<[n, 3], f16>) -> ()
  dlcb.graph.launch(%r) {forms = [], failures = [["RuntimeError", "index {0} of {1}"]]} : (!dlcb.graph.tensor<[n, 3], f16>) -> ()
  // CHECK-NEXT: dlcb.graph.return %r, %l : !dlcb.graph.tensor<[n, 3], f16>, !dlcb.graph.tensor<[n, 3], f16> {updates = [#builtin.int<0>], aliases = {{\[\[}}#builtin.int<0>, #builtin.int<1>]]}
  dlcb.graph.return %r, %l : !dlcb.graph.tensor<[n, 3], f16>, !dlcb.graph.tensor<[n, 3], f16>
      {updates = [#builtin.int<0>], aliases = [[#builtin.int<0>, #builtin.int<1>]]}
}

// CHECK-LABEL: dlcb.graph.func @full_names(
// CHECK-NEXT: %y = dlcb.graph.permute %x {order = [1, 0], other = #builtin.int<3>} : (tensor<[n, 3], f32>) -> tensor<[3, n], f32>
dlcb.graph.func @full_names(%x: !dlcb.graph.tensor<[n, 3], f32> input "x") {
  %y = dlcb.graph.permute %x {order = [#builtin.int<1>, #builtin.int<0>], other = #builtin.int<3>} : (tensor<[n, 3], f32>) -> tensor<[3, n], f32>
  dlcb.graph.return
}

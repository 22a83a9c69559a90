// RUN: dlcb-opt %s | dlcb-opt | filecheck %s
// RUN: dlcb-opt --print-op-generic %s | dlcb-opt | filecheck %s

// CHECK-LABEL: dlcb.host.program @integers(input "x" f32 rank 2, int "k", weight "w" f16 [4, 3] strides [3, 1]) {
dlcb.host.program @integers(input "x" f32 rank 2, int "k", weight "w" f16 [4, 3] strides [3, 1]) {
  // CHECK-NEXT: %n = dlcb.host.size "x" 0
  %n = dlcb.host.size "x" 0
  // CHECK-NEXT: %s = dlcb.host.stride "x" 1
  %s = dlcb.host.stride "x" 1
  // CHECK-NEXT: %k = dlcb.host.integer "k"
  %k = dlcb.host.integer "k"
  // CHECK-NEXT: %c = dlcb.host.constant -4
  %c = dlcb.host.constant -4
  // CHECK-NEXT: %yes = dlcb.host.constant true
  %yes = dlcb.host.constant true
  // CHECK-NEXT: %no = dlcb.host.constant false
  %no = dlcb.host.constant false
  // CHECK-NEXT: %a16 = dlcb.host.aligned "x" 16
  %a16 = dlcb.host.aligned "x" 16
  // CHECK-NEXT: %w8 = dlcb.host.aligned "w" 8
  %w8 = dlcb.host.aligned "w" 8
  // CHECK-NEXT: %0 = dlcb.host.add %n, %s
  %0 = dlcb.host.add %n, %s
  // CHECK-NEXT: %1 = dlcb.host.sub %0, %c
  %1 = dlcb.host.sub %0, %c
  // CHECK-NEXT: %2 = dlcb.host.mul %1, %k
  %2 = dlcb.host.mul %1, %k
  // CHECK-NEXT: %3 = dlcb.host.floordiv %2, %n
  %3 = dlcb.host.floordiv %2, %n
  // CHECK-NEXT: %4 = dlcb.host.ceildiv %3, %n
  %4 = dlcb.host.ceildiv %3, %n
  // CHECK-NEXT: %5 = dlcb.host.mod %4, %n
  %5 = dlcb.host.mod %4, %n
  // CHECK-NEXT: %6 = dlcb.host.min %5, %n
  %6 = dlcb.host.min %5, %n
  // CHECK-NEXT: %7 = dlcb.host.max %6, %n
  %7 = dlcb.host.max %6, %n
  // CHECK-NEXT: %8 = dlcb.host.broadcast %7, %n
  %8 = dlcb.host.broadcast %7, %n
  // CHECK-NEXT: %9 = dlcb.host.scaled %8, 3, 2
  %9 = dlcb.host.scaled %8, 3, 2
  // CHECK-NEXT: %10 = dlcb.host.magic_mul %9, 32
  %10 = dlcb.host.magic_mul %9, 32
  // CHECK-NEXT: %11 = dlcb.host.magic_shift %9, 64
  %11 = dlcb.host.magic_shift %9, 64
  // CHECK-NEXT: %12 = dlcb.host.eq %10, %11
  %12 = dlcb.host.eq %10, %11
  // CHECK-NEXT: %13 = dlcb.host.ne %10, %11
  %13 = dlcb.host.ne %10, %11
  // CHECK-NEXT: %14 = dlcb.host.lt %10, %11
  %14 = dlcb.host.lt %10, %11
  // CHECK-NEXT: %15 = dlcb.host.le %10, %11
  %15 = dlcb.host.le %10, %11
  // CHECK-NEXT: %16 = dlcb.host.and %12, %13
  %16 = dlcb.host.and %12, %13
  // CHECK-NEXT: %17 = dlcb.host.or %16, %14
  %17 = dlcb.host.or %16, %14
  // CHECK-NEXT: %18 = dlcb.host.not %17
  %18 = dlcb.host.not %17
  // CHECK-NEXT: %19 = dlcb.host.select %18, %n, %s
  %19 = dlcb.host.select %18, %n, %s
  // CHECK-NEXT: dlcb.host.check %15, "x.shape[0] is {0} but \22{1}\22" (%n, %19)
  dlcb.host.check %15, "x.shape[0] is {0} but \22{1}\22" (%n, %19)
  // CHECK-NEXT: dlcb.host.check %yes, "nothing" ()
  dlcb.host.check %yes, "nothing" ()
  // CHECK-NEXT: dlcb.host.return (%19 : index)
  dlcb.host.return (%19 : index)
}

// CHECK-LABEL: dlcb.host.program @work(input "x" f32 rank 2, input "cache" bf16 rank 1 updated, weight "w" f32 [] strides []) -> ("y", "row", "n") {
dlcb.host.program @work(input "x" f32 rank 2, input "cache" bf16 rank 1 updated, weight "w" f32 [] strides []) -> ("y", "row", "n") {
  %n = dlcb.host.size "x" 0
  %one = dlcb.host.constant 1
  %yes = dlcb.host.constant true
  // CHECK: %x = dlcb.host.argument "x"
  %x = dlcb.host.argument "x"
  // CHECK-NEXT: %w = dlcb.host.weight "w"
  %w = dlcb.host.weight "w"
  // CHECK-NEXT: %m = dlcb.host.arena %n
  %m = dlcb.host.arena %n
  // CHECK-NEXT: %b = dlcb.host.buffer %m, %n [%n, %one] strides [%one, %one] : f16
  %b = dlcb.host.buffer %m, %n [%n, %one] strides [%one, %one] : f16
  // CHECK-NEXT: %o = dlcb.host.output [] strides [] : i1
  %o = dlcb.host.output [] strides [] : i1
  // CHECK-NEXT: %v = dlcb.host.view %x, %n [%n] strides [%one]
  %v = dlcb.host.view %x, %n [%n] strides [%one]
  // CHECK-NEXT: dlcb.host.launch (%x, %b) [
  // CHECK-NEXT:   @k_v4 threads 256 if %yes blocks %n (%n : i32, %one : i64),
  // CHECK-NEXT:   @k threads 32 if %yes blocks %one ()]
  dlcb.host.launch (%x, %b) [
    @k_v4 threads 256 if %yes blocks %n (%n : i32, %one : i64),
    @k threads 32 if %yes blocks %one ()]
  // CHECK-NEXT: dlcb.host.launch (%b) [
  // CHECK-NEXT:   @k threads 32 if %yes blocks %one ()] failures {{\[\[}}"IndexError", "index {0} of {1}: take"]]
  dlcb.host.launch (%b) [@k threads 32 if %yes blocks %one ()] failures [["IndexError", "index {0} of {1}: take"]]
  // CHECK-NEXT: %y = dlcb.host.library "convolution" (%x, %w) {stride = [2 : i64, 2 : i64], transposed = false} : f32
  %y = dlcb.host.library "convolution" (%x, %w) {stride = [2 : i64, 2 : i64], transposed = false} : f32
  // CHECK-NEXT: dlcb.host.library "matmul" (%x, %w) into %b
  dlcb.host.library "matmul" (%x, %w) into %b
  // CHECK-NEXT: dlcb.host.return (%y, %v, %n : index)
  dlcb.host.return (%y, %v, %n : index)
}

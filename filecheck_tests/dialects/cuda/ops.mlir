// RUN: dlcb-opt %s | dlcb-opt | filecheck %s
// RUN: dlcb-opt --print-op-generic %s | dlcb-opt | filecheck %s

// CHECK-LABEL: dlcb.cuda.kernel @values(%x: !dlcb.cuda.ptr<f32>, %h: !dlcb.cuda.ptr<f16>, %n: i32, %big: i64, %mul: i32, %shift: i32) threads 256 {
dlcb.cuda.kernel @values(%x: !dlcb.cuda.ptr<f32>, %h: !dlcb.cuda.ptr<f16>, %n: i32, %big: i64, %mul: i32, %shift: i32) threads 256 {
  // CHECK-NEXT: %c = dlcb.cuda.constant 256 : i32
  %c = dlcb.cuda.constant 256 : i32
  // CHECK-NEXT: %yes = dlcb.cuda.constant true
  %yes = dlcb.cuda.constant true
  // CHECK-NEXT: %one = dlcb.cuda.constant 1.500000e+00 : f32
  %one = dlcb.cuda.constant 1.5 : f32
  // CHECK-NEXT: %inf = dlcb.cuda.constant 0x7f800000 : f32
  %inf = dlcb.cuda.constant 0x7f800000 : f32
  // CHECK-NEXT: %t = dlcb.cuda.thread_idx : i32
  %t = dlcb.cuda.thread_idx : i32
  // CHECK-NEXT: %b = dlcb.cuda.block_idx : i32
  %b = dlcb.cuda.block_idx : i32
  // CHECK-NEXT: %i0 = dlcb.cuda.scalar mul %b, %c : i32
  %i0 = dlcb.cuda.scalar mul %b, %c : i32
  // CHECK-NEXT: %i = dlcb.cuda.scalar add %i0, %t : i32
  %i = dlcb.cuda.scalar add %i0, %t : i32
  // CHECK-NEXT: %g = dlcb.cuda.scalar lt %i, %n : i1
  %g = dlcb.cuda.scalar lt %i, %n : i1
  // CHECK-NEXT: %least = dlcb.cuda.scalar select %g, %i, %n : i32
  %least = dlcb.cuda.scalar select %g, %i, %n : i32
  // CHECK-NEXT: %q = dlcb.cuda.magic_div %i, %mul, %shift : i32
  %q = dlcb.cuda.magic_div %i, %mul, %shift : i32
  // CHECK-NEXT: %half = dlcb.cuda.load %h[%q] : f16
  %half = dlcb.cuda.load %h[%q] : f16
  // CHECK-NEXT: %wide = dlcb.cuda.scalar cast %half : f32
  %wide = dlcb.cuda.scalar cast %half : f32
  // CHECK-NEXT: %v = dlcb.cuda.load_if %g, %x[%big], %inf : f32
  %v = dlcb.cuda.load_if %g, %x[%big], %inf : f32
  // CHECK-NEXT: dlcb.cuda.store %v, %x[%i]
  dlcb.cuda.store %v, %x[%i]
  // CHECK-NEXT: %v0, %v1 = dlcb.cuda.load_vector %x[%i] : f32, f32
  %v0, %v1 = dlcb.cuda.load_vector %x[%i] : f32, f32
  // CHECK-NEXT: dlcb.cuda.store_vector %v0, %v1, %x[%i]
  dlcb.cuda.store_vector %v0, %v1, %x[%i]
  // CHECK-NEXT: %w0, %w1 = dlcb.cuda.load_part %c, %n, %x[%i] : f32, f32
  %w0, %w1 = dlcb.cuda.load_part %c, %n, %x[%i] : f32, f32
  // CHECK-NEXT: %u0, %u1 = dlcb.cuda.load_unaligned_part %c, %n, %x[%i] : f32, f32
  %u0, %u1 = dlcb.cuda.load_unaligned_part %c, %n, %x[%i] : f32, f32
  // CHECK-NEXT: dlcb.cuda.store_part %w0, %u1, %c, %n, %x[%i]
  dlcb.cuda.store_part %w0, %u1, %c, %n, %x[%i]
  // CHECK-NEXT: %a = dlcb.cuda.var %one : !dlcb.cuda.var<f32>
  %a = dlcb.cuda.var %one : !dlcb.cuda.var<f32>
  // CHECK-NEXT: dlcb.cuda.for %k = %i to %n step %c {
  dlcb.cuda.for %k = %i to %n step %c {
    // CHECK-NEXT: %old = dlcb.cuda.get %a : f32
    %old = dlcb.cuda.get %a : f32
    // CHECK-NEXT: dlcb.cuda.set %a, %old
    dlcb.cuda.set %a, %old
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: dlcb.cuda.if %g {
  dlcb.cuda.if %g {
    // CHECK-NEXT: dlcb.cuda.store %wide, %x[%least]
    dlcb.cuda.store %wide, %x[%least]
  }
}

// CHECK-LABEL: dlcb.cuda.kernel @phases(%x: !dlcb.cuda.ptr<f32>, %n: i32) threads 64 attributes {dlcb.source = "model.py:12"} {
dlcb.cuda.kernel @phases(%x: !dlcb.cuda.ptr<f32>, %n: i32) threads 64 attributes {dlcb.source = "model.py:12"} {
  // CHECK-NEXT: %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 4>
  %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 4>
  // CHECK-NEXT: %s = dlcb.cuda.shared : !dlcb.cuda.shared<f32, 64>
  %s = dlcb.cuda.shared : !dlcb.cuda.shared<f32, 64>
  %zero = dlcb.cuda.constant 0 : i32
  %one = dlcb.cuda.constant 1 : i32
  %yes = dlcb.cuda.constant true
  %first = dlcb.cuda.read %l[%zero] : f32
  // CHECK: dlcb.cuda.for %i = %zero to %n step %one rolled {
  dlcb.cuda.for %i = %zero to %n step %one rolled {
    dlcb.cuda.write %first, %s[%i]
  }
  // CHECK: dlcb.cuda.for %k = %zero to %n step %one uniform unroll {
  dlcb.cuda.for %k = %zero to %n step %one uniform unroll {
    %t = dlcb.cuda.thread_idx : i32
    // CHECK: %v = dlcb.cuda.read %l[%zero] : f32
    %v = dlcb.cuda.read %l[%zero] : f32
    // CHECK-NEXT: dlcb.cuda.write %v, %s[%t]
    dlcb.cuda.write %v, %s[%t]
    // CHECK-NEXT: dlcb.cuda.check 3 %yes, %t, %zero
    dlcb.cuda.check 3 %yes, %t, %zero
    // CHECK-NEXT: dlcb.cuda.shuffle_xor %l[%k], %l[%zero], 16
    dlcb.cuda.shuffle_xor %l[%k], %l[%zero], 16
    // CHECK-NEXT: dlcb.cuda.barrier
    dlcb.cuda.barrier
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: dlcb.cuda.if %yes uniform {
  dlcb.cuda.if %yes uniform {
    // CHECK-NEXT: dlcb.cuda.barrier
    dlcb.cuda.barrier
  }
}

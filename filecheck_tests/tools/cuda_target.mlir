// RUN: dlcb-opt %s -t cuda-c | filecheck %s

dlcb.cuda.kernel @copy(%x: !dlcb.cuda.ptr<f32>, %y: !dlcb.cuda.ptr<f32>) threads 32 {
  %i = dlcb.cuda.thread_idx : i32
  %v = dlcb.cuda.load %x[%i] : f32
  dlcb.cuda.store %v, %y[%i]
}

// CHECK-NOT: #include
// CHECK: DLCB_KERNEL(copy, 32, float* x, float* y)

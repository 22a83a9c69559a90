// RUN: rm -rf %t && dlcb-opt %s -p cse,canonicalize --dump-dir %t && ls %t | filecheck %s
// RUN: dlcb-opt %t/01-cse.mlir | filecheck %s --check-prefix AGAIN

%0 = "test.op"() : () -> i32 loc("model.py":12:0)

// CHECK: 00-input.mlir
// CHECK-NEXT: 01-cse.mlir
// CHECK-NEXT: 02-canonicalize.mlir
// AGAIN: %0 = "test.op"() : () -> i32

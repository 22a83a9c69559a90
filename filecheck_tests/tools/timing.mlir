// RUN: dlcb-opt %s -p cse,canonicalize --timing 2>&1 | filecheck %s

builtin.module {}

// CHECK: cse {{.*}} ms
// CHECK-NEXT: canonicalize {{.*}} ms
// CHECK-NEXT: total {{.*}} ms

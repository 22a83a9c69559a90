// RUN: not dlcb-opt %s 2>&1 | filecheck %s

builtin.module {
  %0 = "test.op"() : () -> (i32

// CHECK: malformed.mlir:{{.*}}: error: ')' expected
// CHECK-NOT: Traceback

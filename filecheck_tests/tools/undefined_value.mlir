// RUN: not dlcb-opt %s 2>&1 | filecheck %s

"test.op"(%missing) : (i32) -> ()

// CHECK: undefined_value.mlir:3:11: error: %missing is used, but nothing defines it
// CHECK-NEXT: "test.op"(%missing) : (i32) -> ()
// CHECK-NEXT: {{^          \^\^\^\^\^\^\^\^$}}

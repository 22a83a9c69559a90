// RUN: not dlcb-opt %s 2>&1 | filecheck %s

%0 = "test.op"() : () -> i32
"test.op"(%0) : (i64) -> ()

// CHECK: wrong_type.mlir:4:11: error: operand is used with type i64, but has been previously used or defined with type i32
// CHECK-NEXT: "test.op"(%0) : (i64) -> ()
// CHECK-NEXT: {{^          \^\^$}}

// RUN: not dlcb-opt %s 2>&1 | filecheck %s

builtin.module {
  "test.op"(%0) : (i32) -> ()
  %0 = "test.op"() : () -> i32
}

// CHECK: use_before_definition.mlir:4:3: error: test.op: operand 0 is used before its definition by `%0 = "test.op"() : () -> i32`
// CHECK-NEXT: "test.op"(%0) : (i32) -> ()
// CHECK-NEXT: {{^  \^}}

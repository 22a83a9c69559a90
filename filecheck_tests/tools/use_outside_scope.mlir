// RUN: not dlcb-opt %s 2>&1 | filecheck %s

"test.op"() ({
  %0 = "test.op"() : () -> i32
  "test.termop"(%1) : (i32) -> ()
}, {
  %1 = "test.op"() : () -> i32
  "test.termop"() : () -> ()
}) : () -> ()

// CHECK: use_outside_scope.mlir:5:3: error: test.termop: operand 0 is used before its definition by `%0 = "test.op"() : () -> i32`

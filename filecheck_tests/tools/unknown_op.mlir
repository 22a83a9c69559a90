// RUN: not dlcb-opt %s 2>&1 | filecheck %s

%0 = "dlcb.graph.ad"() : () -> i32

// CHECK: unknown_op.mlir:3:7: error: unknown op 'dlcb.graph.ad'
// CHECK-NEXT: %0 = "dlcb.graph.ad"() : () -> i32
// CHECK-NEXT: {{^      \^\^\^\^\^\^\^\^\^\^\^\^\^$}}

// RUN: not dlcb-opt %s 2>&1 | filecheck %s

"test.op"() {value = dense<[1, 2]> : tensor<3xi32>} : () -> ()

// CHECK: bad_attribute.mlir:3:{{.*}}: error: {{.*}}
// CHECK-NOT: Traceback

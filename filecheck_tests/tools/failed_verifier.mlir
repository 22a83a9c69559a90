// RUN: not dlcb-opt %s 2>&1 | filecheck %s

func.func @f() -> i32 {
  func.return
}

// CHECK: failed_verifier.mlir:4:3: error: func.return: {{.*}}Expected arguments to have the same types as the function output types
// CHECK-NEXT: func.return
// CHECK-NEXT: {{^  \^}}

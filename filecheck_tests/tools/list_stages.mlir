// RUN: dlcb-opt --list-stages | filecheck %s

// CHECK:       1 generalize {{.*}}
// CHECK-NEXT:  2 collect
// CHECK-NEXT:  3 solve
// CHECK-NEXT:  4 simplify
// CHECK-NEXT:  5 strides
// CHECK-NEXT:  6 fuse
// CHECK-NEXT:  7 coordinates
// CHECK-NEXT:  8 schedule
// CHECK-NEXT:  9 cuda
// CHECK-NEXT: 10 host

// RUN: dlcb-opt --list-rules | filecheck %s

// CHECK: shape Isolation
// CHECK: graph DecomposeSoftmax

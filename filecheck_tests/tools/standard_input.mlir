// RUN: dlcb-opt %s | dlcb-opt - | filecheck %s

"test.op"() : () -> ()

// CHECK: "test.op"() : () -> ()

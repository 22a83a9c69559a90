// RUN: not dlcb-opt %s --pipeline default 2>&1 | filecheck %s

builtin.module attributes {dlcb.stage = "fusion"} {}

// CHECK: dlcb-opt: error: unknown stage 'fusion'; the stages are generalize, {{.*}}

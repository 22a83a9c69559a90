// RUN: dlcb-opt %s -p canonicalize,cse --print-ir-after all 2>&1 | filecheck %s --check-prefix ALL
// RUN: dlcb-opt %s -p canonicalize,cse --print-ir-after changed 2>&1 | filecheck %s --check-prefix CHANGED
// RUN: dlcb-opt %s -p canonicalize,cse --print-ir-after cse 2>&1 | filecheck %s --check-prefix ONE

%0 = "test.pureop"() : () -> i32
"test.op"() : () -> ()

// ALL: IR after canonicalize
// ALL: IR after cse
// CHANGED: IR after canonicalize
// CHANGED-NOT: pureop
// CHANGED-NOT: IR after cse
// ONE-NOT: IR after canonicalize
// ONE: IR after cse

// RUN: not dlcb-opt %s -p 'dlcb-apply-rules{rules=NoSuchRule}' 2>&1 | filecheck %s

builtin.module {}

// CHECK: dlcb-opt: error: no rule is named 'NoSuchRule'; `dlcb-opt --list-rules` lists them

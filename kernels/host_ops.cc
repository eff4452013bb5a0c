#include <sotto/kernels/ops.h>

namespace sotto {

const Ops& host_ops() { return reference_ops(); }

}  // namespace sotto

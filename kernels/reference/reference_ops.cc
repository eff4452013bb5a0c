#include "reference_ops.h"

namespace sotto {

const Ops& reference_ops() {
  static const ReferenceOps ops;
  return ops;
}

}  // namespace sotto

#include "run_access.h"

#include "../agreement/run_agreement.h"

namespace sotto::internal {

StoreCollectives& RunAccess::collectives(Optimizer& optimizer) {
  return optimizer.agreement_->collectives();
}

ModelAverage& RunAccess::average(Optimizer& optimizer) { return optimizer.agreement_->average(); }

CompressionWatch& RunAccess::compression(Optimizer& optimizer) { return *optimizer.compression_; }

}  // namespace sotto::internal

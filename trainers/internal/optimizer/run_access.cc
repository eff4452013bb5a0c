#include "run_access.h"

#include "../agreement/run_agreement.h"

namespace sotto::internal {

Meetings& RunAccess::meetings(Optimizer& optimizer) { return optimizer.agreement_->meetings(); }

CompressionWatch& RunAccess::compression(Optimizer& optimizer) { return *optimizer.compression_; }

}  // namespace sotto::internal

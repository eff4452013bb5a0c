#include "run_access.h"

#include "../agreement/run_agreement.h"
#include "../reporting/run_reporter.h"
#include "model_meetings.h"

namespace sotto::internal {

StoreCollectives& RunAccess::collectives(Optimizer& optimizer) {
  return optimizer.agreement_->collectives();
}

ModelAverage& RunAccess::average(Optimizer& optimizer) { return optimizer.meetings_->average(); }

Status RunAccess::bring_together(Optimizer& optimizer) {
  return optimizer.meetings_->bring_together();
}

CompressionWatch& RunAccess::compression(Optimizer& optimizer) {
  return optimizer.reporter_->compression();
}

}  // namespace sotto::internal

#include "run_meetings.h"

#include "../agreement/run_agreement.h"

namespace sotto::internal {

Meetings& RunMeetings::of(Optimizer& optimizer) { return optimizer.agreement_->meetings(); }

}  // namespace sotto::internal

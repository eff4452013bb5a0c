#include <sotto/study/train/early_meeting.h>

#include <sotto/comm/session.h>
#include <sotto/comm/stores.h>

namespace sotto::study {

void open_store(OptimizerOptions& options) {
  if (options.store == nullptr) {
    options.store = make_store(options.rendezvous, options.rank,
                               {.insecure = options.insecure,
                                .security = options.security,
                                .known_by = Deadline::after(options.timeout)});
  }
}

Result<std::string> meet_early(OptimizerOptions& options,
                               const std::function<Result<std::string>(StoreCollectives&)>& talk) {
  open_store(options);
  const auto session = make_session(options.store, options.rank, options.nodes, options.timeout);
  if (Status status = session->enter(); !status.ok()) {
    return status;
  }
  StoreCollectives nodes(*session, options.rank, options.nodes, options.timeout);
  Result<std::string> learnt = talk(nodes);
  // What all refuse alike is a fault of this kind.
  if (!learnt.ok() && learnt.status().fault() != Fault::unexpected) {
    return learnt;
  }
  // Node 0 leaves last, so that nobody's next session removes what others still read.
  const Status left = nodes.barrier("known");
  return left.ok() || !learnt.ok() ? learnt : Result<std::string>(left);
}

}  // namespace sotto::study

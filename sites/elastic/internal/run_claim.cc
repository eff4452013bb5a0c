#include "run_claim.h"

#include <sotto/base/bytes.h>
#include <sotto/base/xxh3.h>

namespace sotto {

StoredRuns RunClaim::stored() const {
  const SeedStoreBoard* const store = connections_.store();
  return store == nullptr ? StoredRuns{} : store->runs();
}

BeginningSight::Founder RunClaim::founder(const StoredRuns& stored) const {
  using Founder = BeginningSight::Founder;
  if (connections_.store() == nullptr) {
    return Founder::first_seed;
  }
  return !stored.known                         ? Founder::unknown
         : !stored.latest                      ? Founder::any
         : wanted_ && stored.latest == wanted_ ? Founder::this_node
                                               : Founder::nobody;
}

std::optional<sites::History> RunClaim::claim(const Node& node) {
  SeedStoreBoard* const store = connections_.store();
  if (store == nullptr) {
    return sites::History{};
  }
  const StoredRuns seen = store->runs();
  if (founder(seen) == BeginningSight::Founder::this_node) {
    const sites::History run = wanted_->id;
    wanted_.reset();
    return run;
  }
  const std::uint64_t begun = seen.latest ? seen.latest->number : 0;
  if (!wanted_ || wanted_->number != begun + 1) {  // a store may lose runs
    ByteBuffer drawn;
    drawn.write_string(node.name);
    drawn.write(node.incarnation);
    drawn.write(node.stay);
    drawn.write(begun);
    wanted_ = StoredRun{.number = begun + 1,
                        .id = xxh3_128(drawn.bytes()),
                        .name = node.name,
                        .address = node.address,
                        .step = node.step};
  }
  store->want(wanted_);
  return std::nullopt;
}

void RunClaim::drop() {
  SeedStoreBoard* const store = connections_.store();
  if (wanted_ && store != nullptr) {
    store->want(std::nullopt);
  }
  wanted_.reset();
}

void RunClaim::note_run(const std::optional<sites::History>& run) const {
  if (SeedStoreBoard* const store = connections_.store()) {
    store->note_run(run);
  }
}

void RunClaim::note_end(const sites::History& run, const RunEnd& end) const {
  if (SeedStoreBoard* const store = connections_.store()) {
    store->note_end(run, end);
  }
}

}  // namespace sotto

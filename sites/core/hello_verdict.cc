#include <sotto/sites/core/hello_verdict.h>

#include <algorithm>

namespace sotto::sites {
namespace {

/// The sender is the incarnation that is remembered.
Verdict judge_streams(const Hello& hello, const Self& self, const OutStream& out,
                      const InStream& in) {
  if (hello.yours == self.incarnation) {
    if (hello.applied >= out.next()) {
      return Verdict::self_stale;  // it applied what this site has not made
    }
    const bool forgot = hello.applied < out.receipts() || hello.next <= in.received();
    return forgot ? Verdict::stale : Verdict::agreed;
  }
  // It does not know this incarnation. Before anything durable went between the two that is fine.
  if (out.receipts() == 0 && in.received() == 0) {
    return Verdict::agreed;
  }
  const bool knew = hello.yours == 0 || self.past.find(hello.yours) != nullptr;
  return knew ? Verdict::stale : Verdict::undecided;
}

}  // namespace

void Past::add(Entry entry) {
  entries_.push_back(entry);
  if (entries_.size() > kRemembered) {
    entries_.erase(entries_.begin());
  }
}

const Past::Entry* Past::find(Incarnation incarnation) const {
  const auto found = std::ranges::find(entries_, incarnation, &Entry::incarnation);
  return found == entries_.end() ? nullptr : &*found;
}

void Past::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(entries_.size()));
  for (const Entry& entry : entries_) {
    out.write(entry.incarnation);
    out.write(entry.life);
  }
}

Status Past::load(ByteReader& in) {
  const auto count = in.read<std::uint8_t>();
  if (count > kRemembered) {
    return {Fault::malformed, "checkpoint remembers too many incarnations"};
  }
  entries_.resize(count);
  for (Entry& entry : entries_) {
    entry.incarnation = in.read<Incarnation>();
    entry.life = in.read<std::uint32_t>();
  }
  return in.failed() ? Status(Fault::malformed, "checkpoint ends within incarnations") : Status();
}

Verdict judge(const Hello& hello, const Acquaintance& known, const Self& self, const OutStream& out,
              const InStream& in) {
  if (hello.incarnation == known.incarnation) {
    if (hello.life < known.life) {
      return Verdict::older_process;
    }
    return hello.round < known.round ? Verdict::stale : judge_streams(hello, self, out, in);
  }
  if (const Past::Entry* gone = known.past.find(hello.incarnation)) {
    return hello.life > gone->life ? Verdict::stale : Verdict::older_process;
  }
  // It may know this site without being known: this state is then from before the two met.
  const bool knows = hello.yours == self.incarnation && hello.applied > 0;
  if (knows) {
    return Verdict::self_stale;
  }
  // A process without state begins after all that is known; an unknown one that began before was
  // replaced, and this site does not remember it.
  return hello.life < known.life ? Verdict::older_process : Verdict::newcomer;
}

}  // namespace sotto::sites

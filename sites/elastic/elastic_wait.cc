#include <sotto/sites/elastic/elastic_wait.h>

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/sites/epochs/epoch_rules.h>
#include <sotto/sites/nodes/roster_search.h>

namespace sotto {
namespace {

using WaitKind = ElasticWait::Kind;
using sites::EpochMember;
using sites::EpochNode;
using sites::EpochStanding;

constexpr auto kKinds =
    std::to_array<WaitKind>({WaitKind::nobody, WaitKind::key, WaitKind::admission, WaitKind::quorum,
                             WaitKind::nodes, WaitKind::newcomer, WaitKind::others});

WaitKind before_membership(const WaitSight& sight) {
  if (sight.node.up <= 1) {
    return sight.refused > 0 ? WaitKind::key : WaitKind::nobody;
  }
  return sight.member == nullptr && sight.node.up < sight.node.least ? WaitKind::nodes
                                                                     : WaitKind::admission;
}

WaitKind in_epoch(const EpochMember& member, const WaitSight& sight,
                  const std::set<EpochNode>& heard, bool lost) {
  if (lost && !sites::EpochRules().quorum(heard, member.members())) {
    return WaitKind::quorum;
  }
  if (!lost && member.members().size() < sight.node.least) {
    return WaitKind::nodes;
  }
  if (!lost && member.waits_for_newcomer()) {
    return WaitKind::newcomer;
  }
  return member.wants_gradient() ? WaitKind::none : WaitKind::others;
}

std::string words_of_nobody(const ElasticWait& wait) {
  std::string words =
      wait.founded
          ? fmt::format(
                "no other node is heard, and this one has begun a run before, beside which "
                "it begins no second one: start one of that run's nodes; {}",
                wait.again)
          : fmt::format("no other node is heard; {}; a run that is over has none", wait.asking);
  if (!wait.store.empty()) {
    words += "; " + wait.store;
  }
  if (wait.kind == WaitKind::key) {
    words += fmt::format(
        "; {} datagrams came that this node's key does not open: give all nodes "
        "one key",
        wait.refused);
  }
  return words;
}

/// How a run begins anew that nobody is in.
std::string words_of_again(const WaitSight& sight) {
  if (sight.again_after) {
    return fmt::format(
        "once {} nodes are up, and in no run that makes steps, for {:g} s, another run begins from "
        "the newest model among them",
        sight.node.least, std::chrono::duration<double>(*sight.again_after).count());
  }
  const bool by_store = sight.stored && sight.stored->latest;
  const std::string files =
      by_store ? "; where no process of that run is left, another folder or prefix in seeds may be "
                 "given instead"
      : sight.node.founded && !sight.state.empty()
          ? fmt::format("; where no process of that run is left, {}/votes may be removed instead",
                        sight.state)
          : "";
  return fmt::format(
      "with begin_again_after at all nodes another run begins from the newest model among them{}",
      files);
}

/// What a store says of the run that is waited for.
std::string words_of_store(const WaitSight& sight) {
  if (!sight.stored) {
    return "";
  }
  if (!sight.stored->known) {
    return "the store has yet to answer";
  }
  const auto& run = sight.stored->latest;
  if (!run) {
    return fmt::format("the store names no run, and once {} nodes are up one of them begins it",
                       sight.node.least);
  }
  return run->name.empty()
             ? fmt::format("the store has a run {}, and its entry is refused", run->number)
             : fmt::format(
                   "the store says that {} at {} has begun run {}, and no node of it is heard",
                   run->name, run->address, run->number);
}

}  // namespace

std::string_view name_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::none:
      return "";
    case WaitKind::nobody:
      return "nobody";
    case WaitKind::key:
      return "key";
    case WaitKind::admission:
      return "admission";
    case WaitKind::quorum:
      return "quorum";
    case WaitKind::nodes:
      return "nodes";
    case WaitKind::newcomer:
      return "newcomer";
    case WaitKind::others:
      return "others";
  }
  return "";
}

std::span<const WaitKind> elastic_wait_kinds() { return kKinds; }

ElasticWait wait_of(const WaitSight& sight) {
  ElasticWait wait{.members = sight.node.up,
                   .least = sight.node.least,
                   .founded = sight.node.founded,
                   .empty = sight.node.empty};
  const EpochMember* const member = sight.member;
  constexpr auto kOut =
      std::to_array({EpochStanding::leaving, EpochStanding::left, EpochStanding::failed});
  if (member != nullptr && std::ranges::find(kOut, member->standing()) != kOut.end()) {
    return wait;  // it makes no further step
  }
  if (member == nullptr || member->standing() != EpochStanding::member) {
    wait.kind = before_membership(sight);
    wait.refused = wait.kind == WaitKind::key ? sight.refused : 0;
    wait.again = words_of_again(sight);
    wait.store = words_of_store(sight);
    if (wait.kind == WaitKind::nobody || wait.kind == WaitKind::key) {
      wait.asking = words_of_asking(sight.address, sight.node.asked, sight.stored.has_value());
    }
    return wait;
  }
  wait.members = member->members().size();
  wait.epoch = member->epoch();
  std::set<EpochNode> heard = {member->self()};
  for (const EpochNode& other : member->members()) {
    if (other == member->self() || sight.hears(other)) {
      heard.insert(other);
    } else {
      wait.lost.push_back(other.name);
    }
  }
  wait.kind = in_epoch(*member, sight, heard, !wait.lost.empty());
  wait.again = wait.kind == WaitKind::quorum ? words_of_again(sight) : "";
  return wait;
}

std::string words_of(const ElasticWait& wait) {
  switch (wait.kind) {
    case WaitKind::none:
      return "nothing is waited for";
    case WaitKind::nobody:
    case WaitKind::key:
      return words_of_nobody(wait);
    case WaitKind::admission:
      if (wait.empty && !wait.store.empty()) {
        return fmt::format("no node that is heard is in a run; {}; {}", wait.store, wait.again);
      }
      if (wait.empty) {
        return fmt::format(
            "{}: {}",
            wait.founded ? "no node that is heard is in the run that this one has begun before"
                         : "no node that is heard is in a run; the one that has the first seed's "
                           "address begins one where no other's model is newer",
            wait.again);
      }
      return "this node is not let in yet: a run that goes on does so every ten seconds, or at "
             "once where nodes are missing; one that lacks a quorum lets nobody in";
    case WaitKind::quorum:
      return fmt::format(
          "of the {} members of epoch {} these are lost: {}; the run cannot go on without them: "
          "bring them back in touch; {}",
          wait.members, wait.epoch, fmt::join(wait.lost, ", "), wait.again);
    case WaitKind::nodes:
      return fmt::format("there are {} nodes, and a step needs {}: start more", wait.members,
                         wait.least);
    case WaitKind::newcomer:
      return "the run waits for a newcomer to come near: wait on";
    case WaitKind::others:
      return wait.lost.empty()
                 ? "the others have yet to answer: wait on"
                 : fmt::format("the others have yet to agree to go on without {}: wait on",
                               fmt::join(wait.lost, ", "));
  }
  return "";
}

}  // namespace sotto

// What the handles of nodes have in common that come and go: a site, and a node of one model. Each
// struct of sotto.h is a NodeHandle; the functions are the bodies of those that both have.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/base/status.h>
#include <sotto/base/unix_time.h>
#include <sotto/observe/site_outputs.h>
#include <sotto/observe/site_status.h>
#include <sotto/sites/nodes/report/event_json.h>
#include <sotto/sites/nodes/report/site_event.h>

#include "callers_rule.h"
#include "guard.h"
#include "latest.h"
#include "sotto.h"

namespace sotto::c {

/// A SiteOptimizer or an ElasticOptimizer, with what ends its waits, what has happened, and what it
/// shows.
template <typename Optimizer>
struct NodeHandle {
  /// `make` makes the optimizer of its options and a listener.
  template <typename Options, typename Make>
  NodeHandle(Options options, const SiteOutputOptions& shown, const Make& make)
      : outputs(shown,
                [this](const SiteEvent& event) { events.add(event_json(event, unix_time())); }),
        node(make(attached(std::move(options)), outputs.listener())) {}

  template <typename Options>
  Options attached(Options options) {
    options.stop = &stop;
    options.haste = &haste;
    outputs.attach(options);
    return options;
  }

  /// A second call also ends what a node waits for that leaves after the first.
  void request_stop() {
    if (stop.exchange(true)) {
      haste = true;
    }
  }

  std::atomic<bool> stop{false};
  std::atomic<bool> haste{false};
  Latest<Json, 1'000> events;  ///< events that were not read yet
  SiteOutputs outputs;
  Optimizer node;
  std::shared_ptr<StepFunction> rule = {};  ///< the caller's own; null: one of sotto's
  std::atomic_flag busy;
};

/// What the last call of a node came to, once it has written its state: what its step rule
/// remembers may be missing there.
template <typename Node>
Status ended(const Node& held, const Status& status) {
  return status.ok() && held.rule != nullptr ? held.rule->unsaved() : status;
}

template <typename Node>
sotto_status evaluate(Node* held, double loss, double accuracy) {
  return in_turn(held, [&] {
    held->node.evaluated({.loss = loss, .accuracy = accuracy});
    return Status();
  });
}

template <typename Node>
sotto_status tell_over(Node* held, int* over) {
  return in_turn(held, [&] {
    need(over, "over");
    *over = held->node.over() ? 1 : 0;
    return Status();
  });
}

template <typename Node>
sotto_status tell_round(Node* held, std::uint64_t* round) {
  return in_turn(held, [&] {
    need(round, "round");
    *round = held->node.round();
    return Status();
  });
}

template <typename Node>
sotto_status tell_next_step(Node* held, std::uint64_t* step) {
  return in_turn(held, [&] {
    need(step, "step");
    *step = held->node.next_step();
    return Status();
  });
}

template <typename Node>
sotto_status give_report(Node* held, char** json) {
  return guarded([&] {
    need(held, Node::kKind);
    need(json, "json");
    return give(json_text(site_status_json(held->node.report())), json);
  });
}

template <typename Node>
sotto_status give_events(Node* held, char** json) {
  return guarded([&] {
    need(held, Node::kKind);
    need(json, "json");
    Json all = Json::array();
    for (Json& event : held->events.take()) {
      all.push_back(std::move(event));
    }
    return give(json_text(all), json);
  });
}

}  // namespace sotto::c

#include <sotto/optim/exchange/shared_models.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sotto {

SharedModels::Held SharedModels::start(std::span<const float> values, const Ops& ops) {
  if (Held known = start_.lock();
      known != nullptr && known->values.size() == values.size() &&
      std::memcmp(known->values.data(), values.data(), values.size_bytes()) == 0) {
    return known;
  }
  auto made = std::make_shared<SharedModel>();
  made->copy = Vector(values, ops);
  made->values = made->copy;
  start_ = made;
  return made;
}

SharedModels::Held SharedModels::publish(Rank owner, std::uint64_t version,
                                         std::span<const float> values) {
  auto made = std::make_shared<SharedModel>();
  made->values = values;
  add(owner, version, made);
  return made;
}

void SharedModels::leave(Held& own, const Ops& ops) {
  if (own != nullptr && own.use_count() > 1) {
    own->copy = Vector(own->values, ops);
    own->values = own->copy;
  }
  own.reset();
}

SharedModels::Held SharedModels::find(Rank owner, std::uint64_t version) const {
  const auto known = by_owner_.find(owner);
  if (known == by_owner_.end()) {
    return nullptr;
  }
  for (const auto& one : known->second) {
    if (Held held = one.lock(); held != nullptr && held->version == version) {
      return held;
    }
  }
  return nullptr;
}

std::span<float> SharedModels::own(Held& held, std::size_t count, const Ops& ops) {
  if (held == nullptr || held.use_count() > 1 || held->copy.empty()) {
    auto made = std::make_shared<SharedModel>();
    made->copy = held == nullptr ? Vector(count, ops) : Vector(held->values, ops);
    made->values = made->copy;
    held = std::move(made);
  }
  return held->copy;
}

void SharedModels::add(Rank owner, std::uint64_t version, const Held& held) {
  held->version = version;
  auto& known = by_owner_[owner];
  std::erase_if(known, [&](const auto& one) {
    const Held other = one.lock();
    return other == nullptr || other == held;
  });
  known.push_back(held);
}

}  // namespace sotto

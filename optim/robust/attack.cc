#include <sotto/optim/robust/attack.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/kernels/norm.h>

namespace sotto {
namespace {

struct Form {
  std::string_view name;
  Attack::Kind kind;
  double strength;  ///< default strength; NaN: it has none
};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<Form, 7> kForms = {{{"alie", Attack::Kind::alie, 10},
                                         {"ipm", Attack::Kind::ipm, 0.1},
                                         {"dissensus", Attack::Kind::dissensus, 1.5},
                                         {"near-ipm", Attack::Kind::near_ipm, kNone},
                                         {"sign-flip", Attack::Kind::sign_flip, kNone},
                                         {"noise", Attack::Kind::noise, 1},
                                         {"label-flip", Attack::Kind::label_flip, kNone}}};

const Form& form_of(Attack::Kind kind) {
  return *std::find_if(kForms.begin(), kForms.end(),
                       [kind](const Form& form) { return form.kind == kind; });
}

[[noreturn]] void refuse_attack(std::string_view spec) {
  refuse_unknown("attack", spec, names_of(kForms),
                 {"alie[:Z]", "ipm[:EPSILON]", "dissensus[:EPSILON]", "near-ipm", "sign-flip",
                  "noise[:SIGMA]", "label-flip, with a number from 0 to 1000000"});
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += double{a[k]} * double{b[k]};
  }
  return sum;
}

/// Coordinates are worked on in blocks, each vector in a run.
constexpr std::size_t kBlock = 512;
using Block = std::array<double, kBlock>;

template <typename Write>
void for_each_block(std::size_t size, const Write& write) {
  for (std::size_t first = 0; first < size; first += kBlock) {
    write(first, std::min(kBlock, size - first));
  }
}

/// The means over the victim and its honest neighbours.
void means(std::span<const float> victim, std::span<const Witnessed> honest, std::size_t first,
           std::size_t count, Block& mean) {
  const auto models = static_cast<double>(honest.size() + 1);
  for (std::size_t k = 0; k < count; ++k) {
    mean[k] = double{victim[first + k]};
  }
  for (const Witnessed& other : honest) {
    for (std::size_t k = 0; k < count; ++k) {
      mean[k] += double{other.model[first + k]};
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    mean[k] /= models;
  }
}

/// Their standard deviations, with n − 1; 0 for one value.
void deviations(std::span<const float> victim, std::span<const Witnessed> honest, std::size_t first,
                std::size_t count, const Block& mean, Block& deviation) {
  const auto add = [&](std::span<const float> model) {
    for (std::size_t k = 0; k < count; ++k) {
      const double off = double{model[first + k]} - mean[k];
      deviation[k] += off * off;
    }
  };
  deviation.fill(0);
  add(victim);
  for (const Witnessed& other : honest) {
    add(other.model);
  }
  const double divisor = static_cast<double>(std::max(honest.size(), std::size_t{1}));
  for (std::size_t k = 0; k < count; ++k) {
    deviation[k] = std::sqrt(deviation[k] / divisor);
  }
}

void craft_alie(double z, std::span<const float> victim, std::span<const Witnessed> honest,
                std::span<float> out) {
  for_each_block(out.size(), [&](std::size_t first, std::size_t count) {
    Block mean;
    Block deviation;
    means(victim, honest, first, count, mean);
    deviations(victim, honest, first, count, mean, deviation);
    for (std::size_t k = 0; k < count; ++k) {
      out[first + k] = static_cast<float>(mean[k] - z * deviation[k]);
    }
  });
}

void craft_ipm(double epsilon, std::span<const float> victim, std::span<const Witnessed> honest,
               std::span<float> out) {
  for_each_block(out.size(), [&](std::size_t first, std::size_t count) {
    Block mean;
    means(victim, honest, first, count, mean);
    for (std::size_t k = 0; k < count; ++k) {
      out[first + k] = static_cast<float>(-epsilon * mean[k]);
    }
  });
}

void craft_dissensus(double epsilon, std::span<const float> victim,
                     std::span<const Witnessed> honest, double liars, std::span<float> out) {
  for_each_block(out.size(), [&](std::size_t first, std::size_t count) {
    Block pull{};
    for (const Witnessed& other : honest) {
      for (std::size_t k = 0; k < count; ++k) {
        pull[k] += other.weight * (double{other.model[first + k]} - double{victim[first + k]});
      }
    }
    for (std::size_t k = 0; k < count; ++k) {
      out[first + k] = static_cast<float>(double{victim[first + k]} - epsilon * pull[k] / liars);
    }
  });
}

void craft_near(std::span<const float> victim, std::span<const float> step,
                std::span<const Witnessed> honest, std::span<float> out) {
  constexpr double kFarther = 1.5;  // than the nearest, and below Clipped::kOutlier
  constexpr double kTurn = 1.01;    // a little into the half-space that brakes
  craft_ipm(1, victim, honest, out);
  const double along = step.empty() ? 0 : dot(out, step);
  const double turn = along > 0 ? kTurn * along / dot(step, step) : 0;
  double nearest = honest.empty() ? 0 : std::numeric_limits<double>::infinity();
  for (const Witnessed& other : honest) {
    nearest = std::min(nearest, squared_distance(other.model, victim));
  }
  double squares = 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] -= turn > 0 ? static_cast<float>(turn * double{step[k]}) : 0.0F;
    squares += double{out[k]} * double{out[k]};
  }
  const double scale = squares > 0 ? kFarther * std::sqrt(nearest / squares) : 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = static_cast<float>(double{victim[k]} + scale * double{out[k]});
  }
}

}  // namespace

std::string Attack::spec() const {
  const Form& form = form_of(kind);
  return std::isnan(form.strength) ? std::string(form.name)
                                   : fmt::format("{}:{}", form.name, strength);
}

bool Attack::omniscient() const {
  return kind == Kind::alie || kind == Kind::ipm || kind == Kind::dissensus ||
         kind == Kind::near_ipm;
}

Attack parse_attack(std::string_view spec) {
  constexpr double kMost = 1e6;
  const auto colon = spec.find(':');
  const auto form = std::find_if(kForms.begin(), kForms.end(), [&](const Form& candidate) {
    return candidate.name == spec.substr(0, colon);
  });
  if (form == kForms.end()) {
    refuse_attack(spec);
  }
  Attack attack{.kind = form->kind, .strength = std::isnan(form->strength) ? 0 : form->strength};
  if (colon == std::string_view::npos) {
    return attack;
  }
  const auto strength = parse_number<double>(spec.substr(colon + 1), 0, kMost);
  if (std::isnan(form->strength) || !strength) {
    refuse_attack(spec);
  }
  attack.strength = *strength;
  return attack;
}

bool Adversary::includes(Rank rank) const {
  return std::binary_search(nodes.begin(), nodes.end(), rank);
}

void craft(const Attack& attack, std::span<const float> victim, std::span<const float> step,
           std::span<const Witnessed> honest, double liars, std::span<float> out) {
  switch (attack.kind) {
    case Attack::Kind::alie:
      craft_alie(attack.strength, victim, honest, out);
      break;
    case Attack::Kind::ipm:
      craft_ipm(attack.strength, victim, honest, out);
      break;
    case Attack::Kind::dissensus:
      craft_dissensus(attack.strength, victim, honest, liars, out);
      break;
    case Attack::Kind::near_ipm:
      craft_near(victim, step, honest, out);
      break;
    default:
      check(false, "the attack takes the victim's neighbours into account");
  }
}

}  // namespace sotto

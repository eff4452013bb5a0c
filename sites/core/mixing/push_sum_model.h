// The model of a site with push-sum: z = (x + p) / ω, of which p is what parcels pulled since the
// last fold.
//
// The pull p is kept apart so that sums are rounded in the order of PushSum, and the same numbers
// come out where nothing fails.
//
// A building block of PushSumMixing, not for users. One thread at a time. Views z, which is the
// caller's; owns all else. Memory: 4 floats a parameter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/step_rule.h>

namespace sotto::sites {

class PushSumModel {
 public:
  /// Holds nothing until begin() or load(); z and `ops` outlive the object.
  PushSumModel(std::span<float> z, const Ops& ops);

  const Ops& ops() const { return *ops_; }
  std::size_t size() const { return z_.size(); }
  std::span<float> z() const { return z_; }
  std::span<const float> x() const { return x_; }
  /// ω; 0 before begin.
  double mass() const { return mass_; }

  /// Starts from z, with mass 1.
  void begin();
  /// Holds nothing any more; z stays.
  void clear();
  /// Goes on from z, with the mass that there is.
  void follow_z();
  /// Holds what `in` has, as `all` gave it, with this mass. Fault::non_finite for no model.
  Status take_over(ByteReader& in, double mass);
  /// x + p, in values().
  std::span<float> all();

  /// A step of z, φ times this direction back; values() are then z before. Returns how far z moved.
  /// Fault::non_finite where the model is not finite; it has not changed then.
  Result<double> step(const Direction& direction);
  /// z moves by factor (to − from). On a fault nothing has changed.
  Status move_by(float factor, std::span<const float> to, std::span<const float> from);
  /// The mass becomes this; z stays, rounding aside.
  Status rescale(double mass);
  /// As rescale, to more mass: what is added is that of a site with the model `of`.
  Status fill_up(double mass, std::span<const float> of);

  /// Where p is to be written before gave().
  std::span<float> pull() { return pull_; }
  /// What parcels were given is taken away: p, and this mass.
  void gave(double mass);
  /// p ← p + whole × these floats, and ω ← ω + mass; both are finite.
  void pull_as_is(std::span<const std::byte> floats, float whole, double mass);
  /// p ← p + values(), and ω ← ω + mass, unless the model is not finite with them.
  Status pull_values(double mass);
  /// x ← x + p, p ← 0, and z with them.
  Status fold();

  /// Room for the values of one parcel; most functions here use it, too.
  std::vector<float>& values() { return v_; }
  /// More room, likewise.
  std::span<float> room() { return next_; }

  /// Appends x and p; requires mass.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote, with this mass; z follows by fold().
  Status load(ByteReader& in, double mass);

 private:
  /// Piece of p, which is 0 where nothing has pulled.
  std::span<const float> pull_at(std::size_t first, std::size_t count) const;
  /// z ← (x + pull) / mass, of a piece. Says whether all of it is finite.
  bool divide(std::span<const float> x, std::span<const float> pull, double mass,
              std::span<float> z) const;
  /// z ← (x + p) / ω. Fault::non_finite when it overflows.
  Status ratio(std::span<const float> x, std::span<float> z) const;
  /// next ← x − scale d
  void step_along(const Direction& d, float scale, std::span<const float> x,
                  std::span<float> next) const;

  std::span<float> z_;
  const Ops* ops_;
  double mass_ = 0;          // ω
  std::vector<float> x_;     // x
  std::vector<float> pull_;  // p, where pulled_
  bool pulled_ = false;      // p is not 0
  std::vector<float> v_;
  std::vector<float> next_;
  std::vector<float> zeros_;  // in place of a piece of p
};

}  // namespace sotto::sites

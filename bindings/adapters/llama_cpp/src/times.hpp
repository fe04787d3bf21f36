// Where the time of a step goes.
#pragma once

#include <chrono>

// Seconds of one step, summed over layers.
struct Times {
    double plan = 0;     // avsg_engine_plan
    double copy = 0;     // avsg_engine_transfer and avsg_engine_append
    double harness = 0;  // what only the comparison needs: poison, counts, rows put back into llama.cpp's cache
};

// Adds the seconds of its own scope to one field.
class Lap {
  public:
    explicit Lap(double &to) : to_(to), start_(std::chrono::steady_clock::now()) {}
    ~Lap() { to_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
    Lap(const Lap &) = delete;
    Lap &operator=(const Lap &) = delete;

  private:
    double &to_;
    std::chrono::steady_clock::time_point start_;
};

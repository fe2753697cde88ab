mod faults;
mod sharing;
